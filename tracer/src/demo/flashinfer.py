"""A stand-in for FlashInfer 0.6.8, for `jittrace demo`: the same way to a toolkit, the same gate, the same swallowed error."""
import os
import re
import subprocess
import sys


def get_cuda_path():
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return home
    nvcc = subprocess.check_output(["which", "nvcc"], text=True).strip()
    return os.path.dirname(os.path.dirname(nvcc))


def get_cuda_version():
    text = subprocess.check_output([os.path.join(get_cuda_path(), "bin", "nvcc"), "--version"], text=True)
    return tuple(map(int, re.search(r"release (\d+)\.(\d+)", text).groups()))


def target_architectures():
    try:
        if get_cuda_version() < (12, 9):
            raise RuntimeError("SM 12.x requires CUDA >= 12.9.")
        return ["12.0f"]
    except Exception as error:  # the true reason ends here, as one line in a log
        print("Failed to get device capability: %s" % error, file=sys.stderr)
        return []


def check_cuda_arch():
    if not target_architectures():
        raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")
