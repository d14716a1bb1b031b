# cuDNN's sub-libraries from two directories: one is asked for by its bare SONAME and comes from the system.
. "$CASES/fakes.sh"
for d in "wheel 92000" "system 92300"; do set -- $d; so $1/libcudnn_ops.so.9 libcudnn_ops.so.9 "int cudnnGetVersion(void){return $2;}"; done
so wheel/libcudnn_graph.so.9 libcudnn_graph.so.9 'int cudnnGetVersion(void){return 92000;}'
cat > app.py <<'P'
import ctypes, sys
g = ctypes.CDLL("wheel/libcudnn_graph.so.9"); o = ctypes.CDLL("libcudnn_ops.so.9")
if g.cudnnGetVersion() != o.cudnnGetVersion(): sys.exit("RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH")
print("ok")
P
LD_LIBRARY_PATH=system $RUN python3 app.py
LD_LIBRARY_PATH=wheel $RUN python3 app.py
