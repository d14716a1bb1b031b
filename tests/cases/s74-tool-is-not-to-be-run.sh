# A tool is there and may not be run; another is named by a variable and is not there.
. "$CASES/fakes.sh"; T=site-packages/triton/backends/nvidia
tk $T 12.9 "sm_90a"; chmod -x $T/bin/ptxas; tk cuda 13.0 "sm_90a"
sed -i 's|^\[ \$me = nvcc \].*|[ $me = nvcc ] \&\& { cc=${NVCC_PREPEND_FLAGS#-ccbin=}; $cc -E -x c /dev/null >/dev/null \|\| { echo "nvcc fatal   : Failed to preprocess host compiler properties." >\&2; exit 1; }; }|' cuda/bin/nvcc
cat > app.py <<'P'
import subprocess
subprocess.run(["site-packages/triton/backends/nvidia/bin/ptxas", "--gpu-name=sm_90a", "-out=k.cubin", "k.ptx"], check=True)
P
cat > build.py <<'P'
import subprocess
subprocess.run(["cuda/bin/nvcc", "-arch=sm_90a", "-out=k.o", "k.cu"], check=True)
P
$RUN python3 app.py
chmod +x $T/bin/ptxas; $RUN python3 app.py
NVCC_PREPEND_FLAGS="-ccbin=$W/gone/bin/x86_64-conda-linux-gnu-c++" $RUN python3 build.py
NVCC_PREPEND_FLAGS="-ccbin=/usr/bin/cc" $RUN python3 build.py
