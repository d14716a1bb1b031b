# D09: two libcudart majors visible to one process
# After NVIDIA/cudnn-frontend#211. Expected untraced: expected: multiple found; then .12.
. "$CASES/fakes.sh"
rt wheel/libcudart.so.12 libcudart.so.12 12080; rt cuda-13/lib64/libcudart.so.13 libcudart.so.13 13000
cat > app.py <<'P'
import ctypes, sys
got = []
for n in ("libcudart.so.12", "libcudart.so.13"):     # "is it loadable?" is not "is it in use?"
    try: ctypes.CDLL(n); got.append(n)
    except OSError: pass
if len(got) > 1: sys.exit("RuntimeError: Multiple libcudart libraries found: " + " and ".join(got))
print("using", got)
P
LD_LIBRARY_PATH=wheel:cuda-13/lib64 $RUN python3 app.py   # bad
LD_LIBRARY_PATH=wheel $RUN python3 app.py                 # good
