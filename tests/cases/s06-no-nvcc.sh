# A runtime image: no compiler at all.
. "$CASES/fakes.sh"
tk cuda-13.0 13.0 "sm_90a"
cat > app.py <<'P'
import os, shutil, subprocess, sys
home = os.environ.get("CUDA_HOME")
nvcc = home + "/bin/nvcc" if home else shutil.which("nvcc")
if not nvcc: sys.exit("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist")
subprocess.run([nvcc, "-arch=sm_90a", "-out=k.o", "k.cu"], check=True); print("ok")
P
PATH=/usr/bin:/bin $RUN /usr/bin/python3 app.py
CUDA_HOME=$W/nowhere PATH=/usr/bin:/bin $RUN /usr/bin/python3 app.py
CUDA_HOME=$W/cuda-13.0 PATH=/usr/bin:/bin $RUN /usr/bin/python3 app.py
