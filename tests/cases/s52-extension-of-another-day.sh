# The cached extension was built with another toolkit; nothing is built again.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_90a"; tk cuda-13.0 13.0 "sm_90a"; D=.cache/torch_extensions/py312_cu130/ext; mkdir -p $D
printf "nvcc = $W/cuda-12.4/bin/nvcc\ncuda_cflags = -gencode=arch=compute_90a,code=sm_90a\nbuild ext.so: link x.o\n" > $D/build.ninja; so $D/ext.so ext.so 'int f(void){return 1;}'
cat > app.py <<'P'
import ctypes, os, subprocess
d = os.path.expanduser("~/.cache/torch_extensions/py312_cu130/ext/")
if not os.path.exists(d + "ext.so"): os.makedirs(d, exist_ok=True); open(d + "build.ninja", "w").write("nvcc = " + os.environ["CUDA_HOME"] + "/bin/nvcc\n"); subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90a", "-out=" + d + "x.o", "x.cu"], check=True); raise SystemExit(0)
ctypes.CDLL(d + "ext.so").f()
P
export HOME=$W CUDA_HOME=$W/cuda-13.0
$RUN python3 app.py
rm -r $D; $RUN python3 app.py
