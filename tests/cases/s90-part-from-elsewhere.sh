# A part of cuDNN is missing in the wheel; the system's answers and needs what is not there.
. "$CASES/fakes.sh"; S=site-packages/nvidia/cudnn/lib
so b/libcublasLt.so.12 libcublasLt.so.12 'int cublasLtGetVersion(void){return 1;}'; so site-packages/nvidia/cu13/lib/libcublasLt.so.13 libcublasLt.so.13 'int cublasLtGetVersion(void){return 130000;}'
so $S/libcudnn_graph.so.9 libcudnn_graph.so.9 '#include <dlfcn.h>
int cudnnGetVersion(void){return 92000;} int run(void){return dlopen("libcudnn_engines_tensor_ir.so.9",RTLD_NOW)?0:1002;}' -ldl -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN'
so sys/libcudnn_engines_tensor_ir.so.9 libcudnn_engines_tensor_ir.so.9 'int cublasLtGetVersion(void); int f(void){return cublasLtGetVersion();} int cudnnGetVersion(void){return 92302;}' -Lb -l:libcublasLt.so.12; rm -r b
cat > app.py <<'P'
import ctypes
r = ctypes.CDLL("site-packages/nvidia/cudnn/lib/libcudnn_graph.so.9").run()
if r: raise RuntimeError("cuDNN error: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED")
print("ok")
P
LD_LIBRARY_PATH=$W/sys $RUN python3 app.py
so $S/libcudnn_engines_tensor_ir.so.9 libcudnn_engines_tensor_ir.so.9 'int f(void){return 0;}'; $RUN python3 app.py
