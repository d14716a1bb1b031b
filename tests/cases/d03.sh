# D03: pip toolkit assembled from different releases (compiler vs headers); system vs environment toolkit
# After vllm-project/vllm#44305. Expected untraced: expected: incompatibility error, then ok.
. "$CASES/fakes.sh"
S=site-packages/nvidia/cu13; tk $S 13.3 "sm_120f"; tk cuda-12.8 12.8 "sm_120"
echo '#define CUDART_VERSION 13000' > $S/include/cuda_runtime_api.h
mkdir -p site-packages/nvidia_cuda_nvcc-13.3.33.dist-info site-packages/nvidia_cuda_runtime-13.0.96.dist-info
cat > app.py <<'P'
import os, re, subprocess, sys
home = os.environ["CUDA_HOME"]
v = re.search(r"release (\d+)\.(\d+)", subprocess.check_output([home + "/bin/nvcc", "-V"], text=True))
nv = int(v[1]) * 1000 + int(v[2]) * 10
hv = int(re.search(r"CUDART_VERSION (\d+)", open(home + "/include/cuda_runtime_api.h").read())[1])
if nv != hv: sys.exit(f"error: CUDA compiler ({nv}) and CUDA toolkit headers ({hv}) are incompatible")
print("ok", nv, hv)
P
CUDA_HOME=$W/$S $RUN python3 app.py                                  # bad
echo '#define CUDART_VERSION 13030' > $S/include/cuda_runtime_api.h; CUDA_HOME=$W/$S $RUN python3 app.py  # good
