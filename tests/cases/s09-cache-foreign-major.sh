# A module in the cache was built for CUDA 13; this process has 12.
. "$CASES/fakes.sh"
rt nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12 12090; rt b/libcudart.so.13 libcudart.so.13 13000
C=.cache/flashinfer/0.6.9/90a/cached_ops/norm; mkdir -p $C
so $C/norm.so norm.so 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' -Lb -l:libcudart.so.13; rm -r b
so $C/ok.so ok.so 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' -Lnvidia/cuda_runtime/lib -l:libcudart.so.12
cat > app.py <<'P'
import ctypes, sys
ctypes.CDLL("nvidia/cuda_runtime/lib/libcudart.so.12", mode=ctypes.RTLD_GLOBAL); ctypes.CDLL(sys.argv[1]); print("loaded")
P
$RUN python3 app.py $W/$C/norm.so
$RUN python3 app.py $W/$C/ok.so
