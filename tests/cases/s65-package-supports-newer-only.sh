# A package says from which release on it is supported.
. "$CASES/fakes.sh"
tk cuda-11.5 11.5 "sm_80"; tk cuda-12.4 12.4 "sm_80 sm_90"
cat > setup.py <<'P'
import os, re, shutil, subprocess
nvcc = shutil.which("nvcc"); out = subprocess.check_output([nvcc, "-V"], universal_newlines=True); v = re.search(r"release (\d+)\.(\d+)", out)
if (int(v[1]), int(v[2])) < (11, 7): raise RuntimeError("FlashAttention is only supported on CUDA 11.7 and above.  Note: make sure nvcc has a supported version by running nvcc -V.")
P
PATH=$W/cuda-11.5/bin:$PATH $RUN python3 setup.py
PATH=$W/cuda-12.4/bin:$PATH $RUN python3 setup.py
