# The program's own sentence about a library of the other major, swallowed by a fallback to CPU; exit 0.
. "$CASES/fakes.sh"
rt b/libcudart.so.13 libcudart.so.13 13000; rt s/nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12 12090
so s/flash_attn/flash_attn_2_cuda.so flash_attn_2_cuda.so 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' -Lb -l:libcudart.so.13
so s/flash_attn/flash_attn_12.so flash_attn_12.so 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' -Ls/nvidia/cuda_runtime/lib -l:libcudart.so.12; rm -r b
cat > app.py <<'P'
import ctypes, logging, sys
ctypes.CDLL("s/nvidia/cuda_runtime/lib/libcudart.so.12", mode=ctypes.RTLD_GLOBAL)
try: ctypes.CDLL("s/flash_attn/" + sys.argv[1])
except OSError as e: logging.warning("flash_attn is not available (%s); falling back to SDPA", e)
print("serving")
P
$RUN python3 app.py flash_attn_2_cuda.so
$RUN python3 app.py flash_attn_12.so
