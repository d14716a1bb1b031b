# The linker of device code is older than the objects.
. "$CASES/fakes.sh"
tk cuda-12.8 12.8 "sm_90"; tk cuda-13.0 13.0 "sm_90"
for d in "cuda-12.8 128" "cuda-13.0 130"; do set -- $d; cat > $1/bin/nvlink <<S
#!/bin/sh
case "\$1" in --version) echo "nvlink: fake NVIDIA tool"; echo "Cuda compilation tools, release ${1#cuda-}, V${1#cuda-}.0"; exit 0;; esac
n=\$(cat a.o); [ \$n -le $2 ] || { echo "nvlink fatal   : Input file 'a.o' newer than toolkit (\$n vs $2) (target: sm_90)" >&2; exit 1; }
S
chmod +x $1/bin/nvlink; done
echo 130 > a.o
cat > app.py <<'P'
import os, shutil, subprocess, sys
subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90", "-out=b.o", "k.cu"], check=True)
sys.exit(subprocess.run([shutil.which("nvlink"), "--arch=sm_90", "a.o", "-o", "dlink.cubin"]).returncode)
P
CUDA_HOME=$W/cuda-13.0 PATH=$W/cuda-12.8/bin:$PATH $RUN python3 app.py
CUDA_HOME=$W/cuda-13.0 PATH=$W/cuda-13.0/bin:$PATH $RUN python3 app.py
