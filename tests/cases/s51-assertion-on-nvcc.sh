# An assertion on nvcc, which was found by `which`.
. "$CASES/fakes.sh"
tk cuda-12.2 12.2 "sm_90a"; tk cuda-12.8 12.8 "sm_90a"
cat > app.py <<'P'
import os, re, subprocess
def find():
    h = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if h is None:
        with open(os.devnull, "w") as n: h = subprocess.check_output(["which", "nvcc"], stderr=n).decode().rstrip("\r\n"); h = os.path.dirname(os.path.dirname(h))
    return h
v = re.search(r"release (\d+)\.(\d+)", os.popen(find() + "/bin/nvcc --version 2>&1").read())
assert (int(v[1]), int(v[2])) >= (12, 3), "NVCC version should be >= 12.3"
P
PATH=$W/cuda-12.2/bin:$PATH $RUN python3 app.py
CUDA_HOME=$W/cuda-12.8 PATH=$W/cuda-12.2/bin:$PATH $RUN python3 app.py
