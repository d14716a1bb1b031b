# The driver library is right and says which service is not there: the fabric manager (802), MPS (805), the kernel module (NVML 18).
. "$CASES/fakes.sh"
so drv/libcuda.so.580.126.20 libcuda.so.1 '#include <stdlib.h>
static int asked; int cuDriverGetVersion(int*v){*v=13000;return 0;}
int cuInit(unsigned f){const char*a=getenv("ANSWER"); int r=a?atoi(a):0; return getenv("LATER")&&asked++?0:r;}'; ln -s libcuda.so.580.126.20 drv/libcuda.so.1
so drv/libnvidia-ml.so.580.126.20 libnvidia-ml.so.1 '#include <stdlib.h>
int nvmlInit_v2(void){return getenv("ANSWER")?atoi(getenv("ANSWER")):0;}'; ln -s libnvidia-ml.so.580.126.20 drv/libnvidia-ml.so.1
cat > app.py <<'P'
import ctypes, sys
l = ctypes.CDLL("libcuda.so.1"); r = l.cuInit(0)
if r and "wait" in sys.argv: r = l.cuInit(0)
if r and "cpu" in sys.argv: print("UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized", file=sys.stderr); sys.exit()
if r: raise RuntimeError(f"Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error {r}")
P
cat > monitor.py <<'P'
import ctypes
r = ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2()
if r: raise RuntimeError("Failed to initialize NVML: Driver/library version mismatch")
P
export LD_LIBRARY_PATH=$W/drv
ANSWER=802 $RUN python3 app.py
ANSWER=802 $RUN python3 app.py cpu
ANSWER=802 LATER=1 $RUN python3 app.py wait
$RUN python3 app.py
ANSWER=805 CUDA_MPS_PIPE_DIRECTORY=$W/mps $RUN python3 app.py
ANSWER=18 $RUN python3 monitor.py
$RUN python3 monitor.py
