# A build file of another day is run as it is: it names the old compiler, whatever CUDA_HOME says.
. "$CASES/fakes.sh"
tk cuda-12.8 12.8 "sm_90"; tk cuda-13.0 13.0 "sm_90 sm_121a"
mkdir -p .cache/flashinfer/0.6.8/121a/cached_ops/page; B=.cache/flashinfer/0.6.8/121a/cached_ops/page/build.ninja
printf 'cuda_home = %s\nnvcc = %s\n' $W/cuda-12.8 $W/cuda-12.8/bin/nvcc > $B
cat > app.py <<'P'
import os, subprocess, sys
d = ".cache/flashinfer/0.6.8/121a/cached_ops/page/"
if not os.path.exists(d + "build.ninja"):
    h = os.environ["CUDA_HOME"]; open(d + "build.ninja", "w").write(f"cuda_home = {h}\nnvcc = {h}/bin/nvcc\n")
nvcc = [l.split(" = ")[1].strip() for l in open(d + "build.ninja") if l.startswith("nvcc")][0]
sys.exit(subprocess.run([nvcc, "-arch=sm_121a", "-out=" + d + "page.so", "page.cu"]).returncode)
P
CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
rm $B; CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
