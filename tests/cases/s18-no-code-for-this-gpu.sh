# A GPU that the wheel has no code for: the warning, then error 209 from the launch.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 '#include <stdlib.h>
int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;}
int cuDeviceGetAttribute(int*v,int a,int d){*v=a==75?atoi(getenv("GPU_MAJOR")):0;return 0;}'
mkdir -p site-packages/mylib
cat > app.py <<'P'
import ctypes, sys, warnings
cu, a, b = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
cu.cuInit(0); cu.cuDeviceGetAttribute(ctypes.byref(a), 75, 0); cu.cuDeviceGetAttribute(ctypes.byref(b), 76, 0)
have = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
if a.value > 9:
    warnings.warn(f"\nNVIDIA GeForce RTX 5090 with CUDA capability sm_{a.value}{b.value} is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities {' '.join(have)}.\n")
    raise RuntimeError("CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported at some other API call")
print("ok")
P
export LD_LIBRARY_PATH=$W/drv
GPU_MAJOR=12 $RUN python3 app.py
GPU_MAJOR=9 $RUN python3 app.py
