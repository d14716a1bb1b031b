# CUDA_HOME in every wrong spelling: its bin, the compiler itself, ~, quotes, a space, a list, a variable; then two right ones.
. "$CASES/fakes.sh"
tk opt/cuda 13.0 "sm_90a"; mkdir -p home; ln -s ../opt/cuda home/cuda
cat > app.py <<'P'
import os, subprocess, sys
h = os.environ["CUDA_HOME"]
try: subprocess.run([os.path.join(h, "bin", "nvcc"), "-arch=sm_90a", "-out=k.o", "k.cu"], check=True)
except OSError as e: sys.exit("RuntimeError: %s" % e)
P
export HOME=$W/home
CUDA_HOME=$W/opt/cuda/bin $RUN python3 app.py
CUDA_HOME=$W/opt/cuda/bin/nvcc $RUN python3 app.py
CUDA_HOME='~/cuda' $RUN python3 app.py
CUDA_HOME="\"$W/opt/cuda\"" $RUN python3 app.py
CUDA_HOME="$W/opt/cuda " $RUN python3 app.py
CUDA_HOME=$W/opt/cuda:$W/opt/other $RUN python3 app.py
CUDA_HOME='$HOME/cuda' $RUN python3 app.py
CUDA_HOME=$W/opt/cuda $RUN python3 app.py
CUDA_HOME=$W/home/cuda/ $RUN python3 app.py
