# The image has PTX only, and the driver's compiler was left out of the container (221).
. "$CASES/fakes.sh"
so drv/libcuda.so.580.65.06 libcuda.so.1 '#include <dlfcn.h>
int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;} int cuModuleLoadData(void**m,const char*p){ if(p[0]==127) return 0; return dlopen("libnvidia-ptxjitcompiler.so.1",RTLD_NOW)?0:221;}' -ldl; ln -s libcuda.so.580.65.06 drv/libcuda.so.1
so more/libnvidia-ptxjitcompiler.so.1 libnvidia-ptxjitcompiler.so.1 'int x(void){return 0;}'
cat > app.py <<'P'
import ctypes
l = ctypes.CDLL("libcuda.so.1"); l.cuInit(0); m = ctypes.c_void_p(); r = l.cuModuleLoadData(ctypes.byref(m), b".version 8.4\n.target sm_80\n.address_size 64\n")
if r: raise RuntimeError(f"CUDA driver error {r}: PTX JIT compiler library not found")
P
LD_LIBRARY_PATH=$W/drv $RUN python3 app.py
LD_LIBRARY_PATH=$W/drv:$W/more $RUN python3 app.py
