# Four ranks, each traced by itself on its node; one node has another toolkit in its environment.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_90a"; tk cuda-13.0 13.0 "sm_90a sm_103a"
cat > train.py <<'P'
import os, subprocess, sys
sys.exit(subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_103a", f"-out=r{os.environ['RANK']}.o", "k.cu"]).returncode)
P
for r in 0 1 2 3; do h=cuda-13.0; [ $r = 2 ] && h=cuda-12.4; RANK=$r CUDA_HOME=$W/$h $RUN python3 train.py; done
