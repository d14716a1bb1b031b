# Two copies of libcudart of one major; a maps scan takes the stand-in of a third package.
. "$CASES/fakes.sh"
rt site-packages/nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12 12080
so site-packages/tilelang/lib/libcudart_stub.so libcudart_stub.so 'int tl_stub(void){return 0;}'
cat > app.py <<'P'
import ctypes, os, re, sys
ctypes.CDLL(os.path.abspath("site-packages/tilelang/lib/libcudart_stub.so")); ctypes.CDLL(os.path.abspath("site-packages/nvidia/cuda_runtime/lib/libcudart.so.12"))
paths = sorted({l.split()[-1] for l in open("/proc/self/maps") if "libcudart" in l}, key=lambda p: ("stub" not in p) if sys.argv[1:] else ("stub" in p))
lib = ctypes.CDLL(paths[0]); v = ctypes.c_int(); lib.cudaRuntimeGetVersion(ctypes.byref(v)); print("cudart", v.value)
P
$RUN python3 app.py first
$RUN python3 app.py
