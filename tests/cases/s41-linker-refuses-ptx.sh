# Numba: PTX of a newer toolkit; the driver's linker says it.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=12040;return 0;}
int cuLinkAddData_v2(void*s,int t,const char*d,unsigned long n,const char*m,unsigned k,void*o,void**v){return d[9]>(char)56||(d[9]==(char)56&&d[11]>(char)52)?222:0;}'
cat > app.py <<'P'
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1"); v = ctypes.c_int(); cu.cuInit(0); cu.cuDriverGetVersion(ctypes.byref(v))
ptx = (".version %s\n.target sm_80\n.address_size 64\n" % sys.argv[1]).encode()
rc = cu.cuLinkAddData_v2(None, 1, ptx, ctypes.c_ulong(len(ptx)), b"k", 0, None, None)
if rc: raise RuntimeError("[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION\nptxas application ptx input, line 9; fatal   : Unsupported .version %s; current version is '8.4'" % sys.argv[1])
P
export LD_LIBRARY_PATH=$W/drv
$RUN python3 app.py 8.5
$RUN python3 app.py 8.4
