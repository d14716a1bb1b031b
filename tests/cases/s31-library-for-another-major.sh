# bitsandbytes picks a library for a release that this environment does not have.
. "$CASES/fakes.sh"
S=site-packages; rt b/libcusparse.so.11 libcusparse.so.11 11080; so $S/nvidia/cusparse/lib/libcusparse.so.12 libcusparse.so.12 'int cusparseCreate(void){return 0;}'
so $S/bitsandbytes/libbitsandbytes_cuda118.so libbitsandbytes_cuda118.so 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' -Lb -l:libcusparse.so.11
so $S/bitsandbytes/libbitsandbytes_cuda126.so libbitsandbytes_cuda126.so 'int cusparseCreate(void); int f(void){return cusparseCreate();}' -L$S/nvidia/cusparse/lib -l:libcusparse.so.12 -Wl,-rpath,'$ORIGIN/../nvidia/cusparse/lib'; rm -r b
cat > app.py <<'P'
import ctypes, logging, os, sys
v = os.environ.get("BNB_CUDA_VERSION", "126")
try: lib = ctypes.CDLL(f"site-packages/bitsandbytes/libbitsandbytes_cuda{v}.so")
except OSError as e:
    logging.error("Could not load bitsandbytes native library: %s", e, exc_info=True); sys.exit("RuntimeError: CUDA Setup failed despite CUDA being available.")
print("ok")
P
BNB_CUDA_VERSION=118 $RUN python3 app.py
$RUN python3 app.py
