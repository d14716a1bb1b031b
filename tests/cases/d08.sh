# D08: stub libcuda loaded at run time
# After numba/numba#8985. Expected untraced: expected: 34 twice (also for the later libcuda.so.1); then 0.
. "$CASES/fakes.sh"
so cuda/lib64/stubs/libcuda.so libcuda.so.1 'int cuInit(unsigned f){return 34;} int cuDriverGetVersion(int*v){*v=0;return 34;}'
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=12020;return 0;}'; ln -s libcuda.so.1 drv/libcuda.so
cat > app.py <<'P'
import ctypes
for n in ("libcuda.so", "libcuda.so.1"):             # the bare name is tried first
    try: l = ctypes.CDLL(n); break
    except OSError: pass
print(n, "cuInit =", l.cuInit(0)); print("later dlopen of libcuda.so.1 ->", ctypes.CDLL("libcuda.so.1").cuInit(0))
print({x.split()[-1] for x in open("/proc/self/maps") if "libcuda.so" in x})
P
LD_LIBRARY_PATH=cuda/lib64/stubs:drv $RUN python3 app.py  # bad: 34, and the SONAME now answers as the stub too
LD_LIBRARY_PATH=drv $RUN python3 app.py                   # good
