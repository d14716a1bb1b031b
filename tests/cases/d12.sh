# D12: container: runtime vs devel; toolkit present but incomplete
# After sgl-project/sglang#4169. Expected untraced: expected: rc 1 curand_kernel.h; then rc 0.
. "$CASES/fakes.sh"
tk cuda 12.9 "sm_120a"; echo > cuda/include/cuda_runtime.h      # nvcc is there, libcurand-dev is not
mkdir -p site-packages/nvidia/curand/lib && : > site-packages/nvidia/curand/lib/libcurand.so.10
cat > app.py <<'P'
import subprocess
subprocess.run(["cuda/bin/nvcc", "--version"])       # "the toolkit is installed"
r = subprocess.run(["cc", "-xc", "-E", "-Icuda/include", "-"], input="#include <cuda_runtime.h>\n#include <curand_kernel.h>\n", text=True, capture_output=True)
print("rc", r.returncode, r.stderr.splitlines()[-3:][0] if r.returncode else "")
P
$RUN python3 app.py                                       # bad
echo > cuda/include/curand_kernel.h; $RUN python3 app.py  # good (the -dev package)
