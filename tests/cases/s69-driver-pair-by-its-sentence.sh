# Error 803, told by torch; the runtime is linked into an extension.
. "$CASES/fakes.sh"
so compat/libcuda.so.575.57.08 libcuda.so.1 'int cuInit(unsigned f){return 803;} int cuDriverGetVersion(int*v){*v=12090;return 0;}'; ln -s libcuda.so.575.57.08 compat/libcuda.so.1
so host/libcuda.so.580.65.06 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;}'; ln -s libcuda.so.580.65.06 host/libcuda.so.1
so lib/_rt.so _rt.so '#include <dlfcn.h>
int init(void){void*h=dlopen("libcuda.so.1",RTLD_NOW);return ((int(*)(unsigned))dlsym(h,"cuInit"))(0);}' -ldl
cat > app.py <<'P'
import ctypes, sys
if ctypes.CDLL("lib/_rt.so").init(): raise RuntimeError("Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination")
P
LD_LIBRARY_PATH=$W/compat:$W/host $RUN python3 app.py
LD_LIBRARY_PATH=$W/host:$W/compat $RUN python3 app.py
