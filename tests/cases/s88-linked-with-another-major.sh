# The linker found the system's CUDA 11 first: a module of a CUDA 13 process binds it.
. "$CASES/fakes.sh"; S=site-packages/nvidia/cu13
rt $S/lib/libcudart.so.13 libcudart.so.13 13000; rt usr/lib/libcudart.so.11.0 libcudart.so.11.0 11050; ln -s libcudart.so.11.0 usr/lib/libcudart.so; mkdir -p $S/bin c/tvm-ffi
cat > app.py <<'P'
import ctypes, os, subprocess, sys
S = "site-packages/nvidia/cu13"; a = ctypes.CDLL(os.path.abspath(S + "/lib/libcudart.so.13")); a.fakeHandle.restype = ctypes.c_void_p
open("k.c", "w").write("int fakeUse(void*); int use(void*p){return fakeUse(p);}")
subprocess.check_call(["cc", "-shared", "-fPIC", "k.c", "-o", "c/tvm-ffi/k.so", f"-L{S}/lib64", "-L" + sys.argv[1], sys.argv[2]])
r = ctypes.CDLL("c/tvm-ffi/k.so").use(ctypes.c_void_p(a.fakeHandle()))
if r: raise RuntimeError(f"CUDA error: invalid resource handle ({r})")
print("ok")
P
export LD_LIBRARY_PATH=$W/usr/lib CUDA_HOME=$W/$S
$RUN python3 app.py usr/lib -lcudart
rm c/tvm-ffi/k.so; $RUN python3 app.py $S/lib -l:libcudart.so.13
