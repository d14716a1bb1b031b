# A cached module of CUDA 13 is loaded in a CUDA 12 process, together with its runtime, and the driver is for 12.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=12090;return 0;}'
for d in "13 13000" "12 12090"; do set -- $d; so lib$1/libcudart.so.$1 libcudart.so.$1 "#include <dlfcn.h>
int cudaRuntimeGetVersion(int*v){*v=$2;return 0;} int cudaLaunchKernel(void){int d=0;void*h=dlopen(\"libcuda.so.1\",RTLD_NOW);((int(*)(int*))dlsym(h,\"cuDriverGetVersion\"))(&d);return d/1000<$1?35:0;}" -ldl
so .cache/flashinfer/0.6.9/90a/cached_ops/s$1/s$1.so s$1.so 'int cudaLaunchKernel(void); int run(void){return cudaLaunchKernel();}' -Llib$1 -l:libcudart.so.$1; done
cat > app.py <<'P'
import ctypes, os, sys
ctypes.CDLL(os.path.abspath("lib12/libcudart.so.12"))
n = sys.argv[1]; r = ctypes.CDLL(f".cache/flashinfer/0.6.9/90a/cached_ops/{n}/{n}.so").run()
if r: raise RuntimeError(f"SamplingFromProbs failed with error code CUDA driver version is insufficient for CUDA runtime version ({r})")
print("ok")
P
export LD_LIBRARY_PATH=$W/drv:$W/lib12:$W/lib13
$RUN python3 app.py s13
$RUN python3 app.py s12
