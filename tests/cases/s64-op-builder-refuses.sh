# An op builder refuses a toolkit of another major.
. "$CASES/fakes.sh"
tk cuda-12.8 12.8 "sm_90"; tk cuda-13.0 13.0 "sm_90"
cat > ds.py <<'P'
import os, re, subprocess
class CUDAMismatchException(Exception): pass
out = subprocess.check_output([os.environ["CUDA_HOME"] + "/bin/nvcc", "-V"], universal_newlines=True)
m, n = map(int, re.search(r"release (\d+)\.(\d+)", out).groups())
if m != 13: raise CUDAMismatchException(f">- DeepSpeed Op Builder: Installed CUDA version {m}.{n} does not match the version torch was compiled with 13.0, unable to compile cuda/cpp extensions without a matching cuda version.")
P
CUDA_HOME=$W/cuda-12.8 $RUN python3 ds.py
CUDA_HOME=$W/cuda-13.0 $RUN python3 ds.py
