# D16: cache hides a toolkit change
# After flashinfer-ai/flashinfer#3229. Expected untraced: expected: both lines say "by 13.0".
. "$CASES/fakes.sh"
tk cuda-13.0 13.0 "sm_90a"; tk cuda-13.2 13.2 "sm_90a"
cat > app.py <<'P'
import os, subprocess
out = "cache/0.6.9/90a/sampling/sampling.so"         # the key has no toolkit in it
if not os.path.exists(out):
    os.makedirs(os.path.dirname(out)); h = os.environ["CUDA_HOME"]
    open(os.path.dirname(out) + "/build.ninja", "w").write(f"cuda_home = {h}\n")
    subprocess.run([h + "/bin/nvcc", "-arch=sm_90a", "-out=" + out, "s.cu"], check=True)
print("CUDA_HOME", os.path.basename(os.environ["CUDA_HOME"]), "loaded:", open(out).read().strip())
P
CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py; CUDA_HOME=$W/cuda-13.2 $RUN python3 app.py   # second run still "by 13.0"
