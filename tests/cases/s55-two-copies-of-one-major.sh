# Two copies of one runtime, of different releases; a handle goes from the one to the other.
. "$CASES/fakes.sh"
rt a/torch/lib/libcudart.so.12 libcudart.so.12 12080; rt sys/libcudart.so.12 libcudart.so.12 12040
cat > app.py <<'P'
import ctypes, os, sys
t = ctypes.CDLL(os.path.abspath("a/torch/lib/libcudart.so.12")); t.fakeHandle.restype = ctypes.c_void_p; v = ctypes.c_int(); t.cudaRuntimeGetVersion(ctypes.byref(v))
o = ctypes.CDLL(os.path.abspath("sys/libcudart.so.12")) if sys.argv[1:] else t
if o.fakeUse(ctypes.c_void_p(t.fakeHandle())): raise RuntimeError("CUDA error: invalid resource handle")
P
$RUN python3 app.py two
$RUN python3 app.py
