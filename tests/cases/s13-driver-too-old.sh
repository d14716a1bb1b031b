# The runtime is CUDA 13, the driver 12.4.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=12040;return 0;}'
so new/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;}'
so rt/libcudart.so.13 libcudart.so.13 '#include <dlfcn.h>
int cudaRuntimeGetVersion(int*v){*v=13000;return 0;}
int cudaGetDeviceCount(int*n){int v=0;void*h=dlopen("libcuda.so.1",RTLD_NOW);int(*f)(int*)=(int(*)(int*))dlsym(h,"cuDriverGetVersion");f(&v);*n=1;return v<13000?35:0;}' -ldl
cat > app.py <<'P'
import ctypes, sys
c = ctypes.CDLL("rt/libcudart.so.13"); v, n = ctypes.c_int(), ctypes.c_int(); c.cudaRuntimeGetVersion(ctypes.byref(v))
rc = c.cudaGetDeviceCount(ctypes.byref(n))
if rc: sys.exit("RuntimeError: CUDA driver version is insufficient for CUDA runtime version")
print("devices", n.value)
P
LD_LIBRARY_PATH=drv $RUN python3 app.py
LD_LIBRARY_PATH=new $RUN python3 app.py
# 3: caught and printed: the program ends well, without the GPU that it asked for
cat > probe.py <<'P'
import ctypes, sys
for rt in sys.argv[1].split(","):
    n = ctypes.c_int(); c = ctypes.CDLL(rt); c.cudaRuntimeGetVersion(ctypes.byref(n)); rc = c.cudaGetDeviceCount(ctypes.byref(n))
    if not rc: break
print("cuda" if not rc else "cpu")
P
LD_LIBRARY_PATH=drv $RUN python3 probe.py rt/libcudart.so.13
# 4, 5: the same on the CPU on purpose; 6: a launcher that tries one runtime after the other
CUDA_VISIBLE_DEVICES= LD_LIBRARY_PATH=drv $RUN python3 probe.py rt/libcudart.so.13
LD_LIBRARY_PATH=drv $RUN python3 probe.py rt/libcudart.so.13 --device cpu
so rt/libcudart.so.12 libcudart.so.12 'int cudaRuntimeGetVersion(int*v){*v=12040;return 0;} int cudaGetDeviceCount(int*n){*n=1;return 0;}'
LD_LIBRARY_PATH=drv $RUN python3 probe.py rt/libcudart.so.13,rt/libcudart.so.12
