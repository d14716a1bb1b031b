# Two wheels own one file; uninstalling the one took it from the other, which is still installed.
. "$CASES/fakes.sh"; S=site-packages
so $S/nvidia/cudnn/lib/libcudnn.so.9 libcudnn.so.9 'int cudnnGetVersion(void){return 91300;}'
so $S/torch/lib/libtorch_cuda.so libtorch_cuda.so 'int cudnnGetVersion(void); int f(void){return cudnnGetVersion();}' -L$S/nvidia/cudnn/lib -l:libcudnn.so.9 -Wl,--disable-new-dtags -Wl,-rpath,'$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN'
mkdir -p $S/torch-2.9.0+cu128.dist-info $S/nvidia_cudnn_cu12-9.13.0.50.dist-info; printf 'Name: torch\nVersion: 2.9.0+cu128\n' > $S/torch-2.9.0+cu128.dist-info/METADATA; echo torch/lib/libtorch_cuda.so,, > $S/torch-2.9.0+cu128.dist-info/RECORD
printf 'Name: nvidia-cudnn-cu12\nVersion: 9.13.0.50\n' > $S/nvidia_cudnn_cu12-9.13.0.50.dist-info/METADATA; echo nvidia/cudnn/lib/libcudnn.so.9,, > $S/nvidia_cudnn_cu12-9.13.0.50.dist-info/RECORD
mv $S/nvidia/cudnn/lib/libcudnn.so.9 gone
cat > app.py <<'P'
import ctypes, os, sys
sys.path.insert(0, os.path.abspath("site-packages"))
try: ctypes.CDLL(os.path.abspath("site-packages/torch/lib/libtorch_cuda.so"))
except OSError as e: raise ImportError(str(e))
print("ok")
P
$RUN python3 app.py
mv gone $S/nvidia/cudnn/lib/libcudnn.so.9; $RUN python3 app.py
