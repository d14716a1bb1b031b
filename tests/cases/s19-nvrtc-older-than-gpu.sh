# NVRTC is older than the GPU: invalid value for --gpu-architecture.
. "$CASES/fakes.sh"
for d in "old 12 4" "new 12 8"; do set -- $d; so $1/libnvrtc.so.12 libnvrtc.so.12 "#include <string.h>
int nvrtcVersion(int*a,int*b){*a=$2;*b=$3;return 0;} int nvrtcCreateProgram(void**p,const char*s,const char*n,int k,const char**h,const char**i){static int x;*p=&x;return 0;}
int nvrtcCompileProgram(void*p,int n,const char**o){for(int i=0;i<n;i++) if(strstr(o[i],\"120\")&&$3<8) return 5; return 0;}
const char*nvrtcGetErrorString(int e){return e==5?\"NVRTC_ERROR_INVALID_OPTION\":\"NVRTC_SUCCESS\";}"; done
cat > app.py <<'P'
import ctypes, sys
r = ctypes.CDLL("libnvrtc.so.12"); a, b = ctypes.c_int(), ctypes.c_int(); r.nvrtcVersion(ctypes.byref(a), ctypes.byref(b))
p = ctypes.c_void_p(); r.nvrtcCreateProgram(ctypes.byref(p), b"__global__ void k(){}", b"k.cu", 0, None, None)
o = (ctypes.c_char_p * 2)(b"--gpu-architecture=sm_120", b"-default-device")
rc = r.nvrtcCompileProgram(p, 2, o)
if rc: raise RuntimeError("nvrtc: error: invalid value for --gpu-architecture (-arch)\n")
print("compiled")
P
LD_LIBRARY_PATH=$W/old:$W/new $RUN python3 app.py
LD_LIBRARY_PATH=$W/new:$W/old $RUN python3 app.py
