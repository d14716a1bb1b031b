# Two runtimes by hash-renamed copy (auditwheel) and torch's: a handle of the one is nothing to the other.
. "$CASES/fakes.sh"
rt a/torch/lib/libcudart.so.12 libcudart.so.12 12080; rt a/pkg.libs/libcudart-9335f6a2.so.11.0 libcudart-9335f6a2.so.11.0 11080
so a/pkg/_C.so _C.so 'int fakeUse(void*); int use(void*p){return fakeUse(p);} int cudaStreamSynchronize(void*p){return fakeUse(p);}' -La/pkg.libs -l:libcudart-9335f6a2.so.11.0 -Wl,-rpath,'$ORIGIN/../pkg.libs'
cat > app.py <<'P'
import ctypes, sys
t = ctypes.CDLL("a/torch/lib/libcudart.so.12"); t.fakeHandle.restype = ctypes.c_void_p
p = ctypes.CDLL("a/pkg/_C.so"); h = t.fakeHandle()
if sys.argv[1:]: h = ctypes.CDLL("a/pkg.libs/libcudart-9335f6a2.so.11.0").fakeHandle
rc = p.use(ctypes.c_void_p(h)) if not sys.argv[1:] else 0
if rc: raise RuntimeError("CUDA error: invalid resource handle")
P
$RUN python3 app.py
$RUN python3 app.py same
