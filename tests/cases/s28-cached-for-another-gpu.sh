# A module in the cache has code for another GPU: the home directory is shared by machines with different GPUs.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 '#include <stdlib.h>
#include <string.h>
int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;} int cuDeviceGetAttribute(int*v,int a,int d){*v=a==75?atoi(getenv("CC")):0;return 0;}
int cuModuleLoadData(void**m,const char*p){return strstr(p,"sm_90")&&atoi(getenv("CC"))!=9?209:0;}'
mkdir -p .triton/cache/K1; printf 'for sm_90a' > .triton/cache/K1/k.cubin; echo '{"target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "ptx_version": null}' > .triton/cache/K1/k.json
cat > app.py <<'P'
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1"); v = ctypes.c_int(); cu.cuInit(0)
cu.cuDeviceGetAttribute(ctypes.byref(v), 75, 0); cu.cuDeviceGetAttribute(ctypes.byref(v), 76, 0)
img = open(".triton/cache/K1/k.cubin", "rb").read(); open(".triton/cache/K1/k.json").read(); m = ctypes.c_void_p()
rc = cu.cuModuleLoadData(ctypes.byref(m), img)
if rc: raise RuntimeError("Triton Error [CUDA]: device kernel image is invalid" if rc == 200 else "Triton Error [CUDA]: no kernel image is available for execution on the device")
P
export LD_LIBRARY_PATH=$W/drv HOME=$W
CC=12 $RUN python3 app.py
CC=9 $RUN python3 app.py
