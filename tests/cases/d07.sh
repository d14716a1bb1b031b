# D07: WSL libcuda path; bare name vs SONAME
# After NVIDIA/cuda-python#17. Expected untraced: expected: not found; then found by SONAME; then found by directory.
. "$CASES/fakes.sh"
so wsl/lib/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;}'; cp wsl/lib/libcuda.so.1 wsl/lib/libcuda.so
mkdir cache && ln wsl/lib/libcuda.so.1 cache/        # stands for "ldconfig indexed only the SONAME"
cat > app.py <<'P'
import ctypes, sys
for n in sys.argv[1:]:
    try: print(n, "cuInit =", ctypes.CDLL(n).cuInit(0)); break
    except OSError as e: print(e)
else: sys.exit("RuntimeError: Failed to dlopen libcuda.so")
P
LD_LIBRARY_PATH=cache $RUN python3 app.py libcuda.so                  # bad
LD_LIBRARY_PATH=cache $RUN python3 app.py libcuda.so libcuda.so.1     # good: asks for the SONAME
LD_LIBRARY_PATH=wsl/lib $RUN python3 app.py libcuda.so                # the usual workaround
