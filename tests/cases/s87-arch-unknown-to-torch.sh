# TORCH_CUDA_ARCH_LIST has an entry that torch does not know.
. "$CASES/fakes.sh"
tk cuda 13.0 "sm_120"
cat > setup.py <<'P'
import os, subprocess
known = ["8.0", "9.0", "10.0", "12.0"]
for a in os.environ["TORCH_CUDA_ARCH_LIST"].split(";"):
    if a not in known: raise ValueError(f"Unknown CUDA arch ({a}) or GPU not supported")
    subprocess.run(["cuda/bin/nvcc", "-arch=sm_" + a.replace(".", ""), "-out=k.o", "k.cu"], check=True)
print("ok")
P
TORCH_CUDA_ARCH_LIST=12.0f $RUN python3 setup.py
TORCH_CUDA_ARCH_LIST=12.0 $RUN python3 setup.py
