# An older NCCL on LD_LIBRARY_PATH lacks a symbol that torch needs.
. "$CASES/fakes.sh"
S=$W/venv/lib/python3.12/site-packages; N=$S/nvidia/nccl/lib
so $N/libnccl.so.2 libnccl.so.2 'int ncclGetVersion(int*v){*v=22703;return 0;} int ncclCommWindowRegister(void){return 0;}'
so $W/opt/hpc/nccl/lib/libnccl.so.2 libnccl.so.2 'int ncclGetVersion(int*v){*v=22304;return 0;}'
so $S/torch/lib/libtorch_cuda.so libtorch_cuda.so 'int ncclCommWindowRegister(void); int f(void){return ncclCommWindowRegister();}' -L$N -l:libnccl.so.2 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../../nvidia/nccl/lib'
cat > app.py <<'P'
import ctypes, glob
try: ctypes.CDLL(glob.glob("venv/lib/python3*/site-packages/torch/lib/libtorch_cuda.so")[0], mode=ctypes.RTLD_GLOBAL | 2)
except OSError as e: raise ImportError(str(e))
print("torch imported")
P
LD_LIBRARY_PATH=$W/opt/hpc/nccl/lib $RUN python3 app.py
$RUN python3 app.py
