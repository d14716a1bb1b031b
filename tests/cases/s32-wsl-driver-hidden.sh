# The WSL driver is hidden by a Linux driver package that was installed inside the distribution.
. "$CASES/fakes.sh"
so usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01 libcuda.so.1 'int cuInit(unsigned f){return 100;} int cuDriverGetVersion(int*v){*v=12020;return 0;}'; ln -s libcuda.so.535.183.01 usr/lib/x86_64-linux-gnu/libcuda.so.1
so usr/lib/wsl/lib/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=12080;return 0;}'
cat > app.py <<'P'
import ctypes, sys
rc = ctypes.CDLL("libcuda.so.1").cuInit(0)
if rc: raise RuntimeError("CUDA error: no CUDA-capable device is detected")
print("ok")
P
LD_LIBRARY_PATH=$W/usr/lib/x86_64-linux-gnu:$W/usr/lib/wsl/lib $RUN python3 app.py
LD_LIBRARY_PATH=$W/usr/lib/wsl/lib:$W/usr/lib/x86_64-linux-gnu $RUN python3 app.py
