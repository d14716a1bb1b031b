# The driver finds no GPU: CUDA_VISIBLE_DEVICES names others. No GPU is wanted, or the program's end was another's: silent.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 '#include <stdlib.h>
int cuInit(unsigned f){const char*v=getenv("CUDA_VISIBLE_DEVICES"); return !v||(*v>=48&&*v<50)?0:100;} int cuDriverGetVersion(int*v){*v=13000;return 0;}'
cat > app.py <<'P'
import ctypes, sys
r = ctypes.CDLL("libcuda.so.1").cuInit(0)
if "other" in sys.argv: raise ValueError("no such model")
if r and "cpu" not in sys.argv: raise RuntimeError("No CUDA GPUs are available")
P
export LD_LIBRARY_PATH=$W/drv
CUDA_VISIBLE_DEVICES=4,5 $RUN python3 app.py
CUDA_VISIBLE_DEVICES=1 $RUN python3 app.py
CUDA_VISIBLE_DEVICES= $RUN python3 app.py --device cpu
CUDA_VISIBLE_DEVICES=4 $RUN python3 app.py other
