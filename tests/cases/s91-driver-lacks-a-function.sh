# The driver is older than a function that an extension was linked with.
. "$CASES/fakes.sh"
so new/libcuda.so.580.65.06 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuTensorMapEncodeTiled(void){return 0;}'; ln -s libcuda.so.580.65.06 new/libcuda.so.1
so old/libcuda.so.470.256.02 libcuda.so.1 'int cuInit(unsigned f){return 0;}'; ln -s libcuda.so.470.256.02 old/libcuda.so.1
so pkg/deep_gemm_cpp.so deep_gemm_cpp.so 'int cuTensorMapEncodeTiled(void); int f(void){return cuTensorMapEncodeTiled();}' -Lnew -l:libcuda.so.1
cat > app.py <<'P'
import ctypes, os
try: ctypes.CDLL("pkg/deep_gemm_cpp.so", mode=os.RTLD_NOW)
except OSError as e: raise ImportError(str(e))
print("ok")
P
LD_LIBRARY_PATH=$W/old $RUN python3 app.py
LD_LIBRARY_PATH=$W/new $RUN python3 app.py
