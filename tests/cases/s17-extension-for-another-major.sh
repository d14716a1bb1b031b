# An extension is built by setup.py: the toolkit's major is not torch's.
. "$CASES/fakes.sh"
tk usr/local/cuda-12.8 12.8 "sm_90"; tk usr/local/cuda-13.0 13.0 "sm_90"
mkdir -p site-packages/torch/utils site-packages/torch-2.11.0+cu130.dist-info
echo "cuda = '13.0'" > site-packages/torch/version.py; : > site-packages/torch/__init__.py; : > site-packages/torch/utils/__init__.py
printf 'Name: torch\nVersion: 2.11.0+cu130\n' > site-packages/torch-2.11.0+cu130.dist-info/METADATA
printf 'torch/version.py,,\ntorch/__init__.py,,\ntorch/utils/cpp_extension.py,,\n' > site-packages/torch-2.11.0+cu130.dist-info/RECORD
cat > site-packages/torch/utils/cpp_extension.py <<'P'
import os, re, shutil, subprocess, torch.version
def _find_cuda_home():
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home is None: home = os.path.dirname(os.path.dirname(shutil.which("nvcc")))
    return home
def check(home):
    out = subprocess.check_output([home + "/bin/nvcc", "--version"]).decode()
    v = re.search(r"release (\S+),", out).group(1)
    if v.split(".")[0] != torch.version.cuda.split(".")[0]:
        raise RuntimeError("\nThe detected CUDA version ({0}) mismatches the version that was used to compile\nPyTorch ({1}). Please make sure to use the same CUDA versions.\n".format(v, torch.version.cuda))
P
cat > setup.py <<'P'
import subprocess
from torch.utils import cpp_extension as c
home = c._find_cuda_home(); c.check(home)
subprocess.run([home + "/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"], check=True)
P
export PYTHONPATH=$W/site-packages
PATH=$W/usr/local/cuda-12.8/bin:$PATH $RUN python3 setup.py
CUDA_HOME=$W/usr/local/cuda-13.0 PATH=$W/usr/local/cuda-12.8/bin:$PATH $RUN python3 setup.py
