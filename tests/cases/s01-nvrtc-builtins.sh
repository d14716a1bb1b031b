# NVRTC without its builtins: libnvrtc of a wheel without RUNPATH, the builtins beside it but on no search path.
. "$CASES/fakes.sh"
so w/nvrtc/lib/libnvrtc-builtins.so.13.0 libnvrtc-builtins.so.13.0 'int __nvrtc_builtins(void){return 1;}'
so w/nvrtc/lib/libnvrtc.so.13 libnvrtc.so.13 '#include <dlfcn.h>
int nvrtcVersion(int*a,int*b){*a=13;*b=0;return 0;}
int nvrtcCompileProgram(void*p,int n,const char**o){return dlopen("libnvrtc-builtins.so.13.0",RTLD_NOW)?0:7;}' -ldl
cat > app.py <<'P'
import ctypes, sys
l = ctypes.CDLL(sys.argv[1]); a, b = ctypes.c_int(), ctypes.c_int(); l.nvrtcVersion(ctypes.byref(a), ctypes.byref(b))
rc = l.nvrtcCompileProgram(None, 0, None)
if rc: sys.exit("nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n  Make sure that libnvrtc-builtins.so.13.0 is installed correctly.")
print("compiled")
P
$RUN python3 app.py $PWD/w/nvrtc/lib/libnvrtc.so.13
LD_LIBRARY_PATH=$PWD/w/nvrtc/lib $RUN python3 app.py $PWD/w/nvrtc/lib/libnvrtc.so.13
