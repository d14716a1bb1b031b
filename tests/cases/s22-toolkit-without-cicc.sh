# The toolkit has nvcc and no cicc (wheels: nvidia-nvvm not installed).
. "$CASES/fakes.sh"
mk() { tk $1 13.0 "sm_90a"; sed -i 's|^\[ \$me = nvcc \].*|[ $me = nvcc ] \&\& { PATH="${0%/*}/../nvvm/bin:${0%/*}:$PATH" sh -c "cicc --arch compute_90a k.cu -o k.ptx" \|\| exit; "${0%/*}/ptxas" --gpu-name=$arch $src \|\| exit; }|' $1/bin/nvcc; }
S=site-packages/nvidia/cu13; mk $S; mk cuda-13.0; mkdir -p cuda-13.0/nvvm/bin; printf '#!/bin/sh\n: > "$5"\n' > cuda-13.0/nvvm/bin/cicc; chmod +x cuda-13.0/nvvm/bin/cicc
cat > app.py <<'P'
import os, subprocess, sys
r = subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90a", "-out=k.cubin", "k.cu"], capture_output=True, text=True)
if r.returncode: raise RuntimeError("Ninja build failed. Ninja output:\n" + r.stderr)
print("ok")
P
CUDA_HOME=$W/$S $RUN python3 app.py
CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
