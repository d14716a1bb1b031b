# conda's nvcc is a script that calls another, which was not updated with it.
. "$CASES/fakes.sh"
tk conda/targets/x86_64-linux 12.4 "sm_90"; tk cuda-12.9 12.9 "sm_90 sm_120f"; mkdir -p conda/bin conda/conda-meta
printf '#!/bin/sh\nexec %s "$@"\n' "$W/conda/targets/x86_64-linux/bin/nvcc" > conda/bin/nvcc; chmod +x conda/bin/nvcc
cat > app.py <<'P'
import os, shutil, subprocess
h = os.environ.get("CUDA_HOME") or os.path.dirname(os.path.dirname(shutil.which("nvcc")))
r = subprocess.run(["make", "-s", "-f", "/dev/stdin"], input=f"all:\n\t{h}/bin/nvcc -arch=sm_120f -out=k.o k.cu\n", text=True, capture_output=True)
if r.returncode: raise RuntimeError(r.stderr)
P
PATH=$W/conda/bin:$PATH CONDA_PREFIX=$W/conda $RUN python3 app.py
CUDA_HOME=$W/cuda-12.9 PATH=$W/conda/bin:$PATH CONDA_PREFIX=$W/conda $RUN python3 app.py
