# XLA's ptxas from PATH does not support the GPU.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_90"; S=site-packages/nvidia/cuda_nvcc; tk $S 12.9 "sm_90 sm_120"
mkdir -p site-packages/nvidia_cuda_nvcc_cu12-12.9.86.dist-info; printf 'Name: nvidia-cuda-nvcc-cu12\nVersion: 12.9.86\n' > site-packages/nvidia_cuda_nvcc_cu12-12.9.86.dist-info/METADATA
echo nvidia/cuda_nvcc/bin/ptxas,, > site-packages/nvidia_cuda_nvcc_cu12-12.9.86.dist-info/RECORD
cat > app.py <<'P'
import re, shutil, subprocess, sys
p = shutil.which("ptxas") or "site-packages/nvidia/cuda_nvcc/bin/ptxas"
v = re.search(r"V(\S+)", subprocess.check_output([p, "--version"], text=True))[1]
r = subprocess.run([p, "--gpu-name=sm_120", "-out=k.cubin", "k.ptx"], capture_output=True, text=True)
if r.returncode:
    print("W0000 subprocess_compilation.cc] ptxas does not support CC 12.0", file=sys.stderr)
    raise RuntimeError("UNIMPLEMENTED: " + p + " ptxas too old. Falling back to the driver to compile.")
P
export PYTHONPATH=$W/site-packages
PATH=$W/cuda-12.4/bin:$PATH $RUN python3 app.py
$RUN python3 app.py
