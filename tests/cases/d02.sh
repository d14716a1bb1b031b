# D02: CUDA_HOME malformed (used as a list)
# After vllm-project/vllm#36077. Expected untraced: expected: shell finds 12.8; then rc 127; then rc 0.
. "$CASES/fakes.sh"
tk cuda-12.8 12.8 "sm_89"
cat > app.py <<'P'
import os, subprocess
home = os.environ["CUDA_HOME"]                    # used as ONE path
r = subprocess.run(["sh", "-c", f"{home}/bin/nvcc -arch=sm_89 -out=k.cubin k.cu"])
print("rc", r.returncode)
P
export PATH=$W/cuda-12.8/bin:$PATH; nvcc --version | tail -1   # the shell finds it
CUDA_HOME=$CUDA_HOME:$W/cuda-12.8 $RUN python3 app.py               # bad: ":<tree>/bin/nvcc", 127
CUDA_HOME=$W/cuda-12.8 $RUN python3 app.py                          # good
