# An extension is built where no GPU is seen, and TORCH_CUDA_ARCH_LIST is unset.
. "$CASES/fakes.sh"
tk cuda 13.0 "sm_90"; mkdir -p site-packages/torch/utils site-packages/torch-2.9.0+cu130.dist-info; printf 'Name: torch\nVersion: 2.9.0+cu130\n' > site-packages/torch-2.9.0+cu130.dist-info/METADATA
printf 'torch/__init__.py,,\ntorch/version.py,,\ntorch/utils/cpp_extension.py,,\n' > site-packages/torch-2.9.0+cu130.dist-info/RECORD; : > site-packages/torch/__init__.py; : > site-packages/torch/utils/__init__.py; echo "cuda = '13.0'" > site-packages/torch/version.py
cat > site-packages/torch/utils/cpp_extension.py <<'P'
import ctypes, os, subprocess
def flags():
    l = os.environ.get("TORCH_CUDA_ARCH_LIST"); arch_list = l.split(";") if l else []
    if not arch_list:
        try: ctypes.CDLL("libcuda.so.1")
        except OSError: pass
        arch_list[-1] += "+PTX"
    return arch_list
def load():
    subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "--version"], stdout=subprocess.DEVNULL)
    for a in flags(): subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_" + a.replace(".", ""), "-out=k.o", "k.cu"], check=True)
P
echo 'from torch.utils.cpp_extension import load; load(); print("ok")' > setup.py
export PYTHONPATH=$W/site-packages CUDA_HOME=$W/cuda
$RUN python3 setup.py build
TORCH_CUDA_ARCH_LIST=9.0 $RUN python3 setup.py build
