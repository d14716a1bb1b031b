# nvJitLink 12.8 is given what NVRTC 13.0 made.
. "$CASES/fakes.sh"
so a/libnvrtc.so.13 libnvrtc.so.13 'int nvrtcVersion(int*a,int*b){*a=13;*b=0;return 0;}'
so a/libnvJitLink.so.12 libnvJitLink.so.12 'int nvJitLinkVersion(int*a,int*b){*a=12;*b=8;return 0;} int __nvJitLinkAddData_12_8(void*h,int k,const void*d,unsigned long n,const char*s){return 4;}'
so b/libnvJitLink.so.13 libnvJitLink.so.13 'int nvJitLinkVersion(int*a,int*b){*a=13;*b=0;return 0;} int __nvJitLinkAddData_13_0(void*h,int k,const void*d,unsigned long n,const char*s){return 0;}'
cat > app.py <<'P'
import ctypes, sys
a, b = ctypes.c_int(), ctypes.c_int(); r = ctypes.CDLL("a/libnvrtc.so.13"); r.nvrtcVersion(ctypes.byref(a), ctypes.byref(b))
l = ctypes.CDLL(sys.argv[1]); l.nvJitLinkVersion(ctypes.byref(a), ctypes.byref(b)); ptx = b".version 9.0\n.target sm_90\n"
rc = getattr(l, sys.argv[2])(None, 2, ptx, ctypes.c_ulong(len(ptx)), b"k")
sys.exit(f"nvJitLink error {rc}" if rc else 0)
P
$RUN python3 app.py a/libnvJitLink.so.12 __nvJitLinkAddData_12_8
$RUN python3 app.py b/libnvJitLink.so.13 __nvJitLinkAddData_13_0
