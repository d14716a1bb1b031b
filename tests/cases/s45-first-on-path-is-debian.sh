# CUDA_HOME is /usr (Debian's nvcc): headers and libraries of another release lie in /usr/local/cuda-12.9 and CPATH.
. "$CASES/fakes.sh"
mkdir -p venv/bin; tk usr 12.0 "sm_90"; tk usr/local/cuda-12.9 12.9 "sm_90 sm_120"
for d in usr usr/local/cuda-12.9; do sed -i 's|Value .\$arch. is not defined (fake \$V)|Unsupported gpu architecture '"'"'compute_${arch#sm_}'"'"'|' $d/bin/nvcc; done
cat > app.py <<'P'
import os, shutil, subprocess, sys
nvcc = shutil.which("nvcc") or "/usr/local/cuda-12.9/bin/nvcc"
r = subprocess.run(["make", "-f", "-"], input=f"all:\n\t{nvcc} -arch=sm_120 -out=k.o k.cu\n", text=True)
sys.exit(r.returncode)
P
PATH=$W/usr/bin:$W/usr/local/cuda-12.9/bin:$PATH $RUN python3 app.py
PATH=$W/usr/local/cuda-12.9/bin:$W/usr/bin:$PATH $RUN python3 app.py
