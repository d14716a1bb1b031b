# bitsandbytes has no binary for the release of this torch; its variable names another.
. "$CASES/fakes.sh"; S=site-packages/bitsandbytes
for v in 124 126 128 129 130; do so $S/libbitsandbytes_cuda$v.so libbitsandbytes_cuda$v.so 'int cadam(void){return 0;}'; done
so $S/libbitsandbytes_cpu.so libbitsandbytes_cpu.so 'int cpu(void){return 0;}'
mkdir -p site-packages/bitsandbytes-0.48.0.dist-info; printf 'Name: bitsandbytes\nVersion: 0.48.0\n' > site-packages/bitsandbytes-0.48.0.dist-info/METADATA
for v in 124 126 128 129 130; do echo bitsandbytes/libbitsandbytes_cuda$v.so,,; done > site-packages/bitsandbytes-0.48.0.dist-info/RECORD
cat > app.py <<'P'
import ctypes, os, sys
v = os.environ.get("BNB_CUDA_VERSION") or "132"
p = f"site-packages/bitsandbytes/libbitsandbytes_cuda{v}.so"
if not os.path.exists(p): raise RuntimeError(f"Configured CUDA binary not found at {os.path.abspath(p)}")
ctypes.CDLL(p); print("ok", v)
P
$RUN python3 app.py
BNB_CUDA_VERSION=130 $RUN python3 app.py
