# The C library's headers are newer than the toolkit's.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_90"; tk cuda-13.1 13.1 "sm_90"
sed -i 's|^\[ \$me = nvcc \].*|[ $me = nvcc ] \&\& { echo "/usr/include/x86_64-linux-gnu/bits/mathcalls.h(206): error: exception specification is incompatible with that of previous function \\"rsqrt\\" (declared at line 629 of $W/cuda-12.4/include/crt/math_functions.h)" >\&2; exit 2; }|' cuda-12.4/bin/nvcc
cat > app.py <<'P'
import os, subprocess
r = subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"])
if r.returncode: raise RuntimeError("Failed to build JIT module")
print("ok")
P
export W
CUDA_HOME=$W/cuda-12.4 $RUN python3 app.py
CUDA_HOME=$W/cuda-13.1 $RUN python3 app.py
