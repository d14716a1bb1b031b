# D05: ptxas on PATH shadows the wheel's ptxas
# After jax-ml/jax#25718. Expected untraced: expected: fatal for 12.1; ok with the wheel's copy.
. "$CASES/fakes.sh"
S=site-packages/nvidia/cuda_nvcc; tk $S 12.6 "sm_80"; tk cuda-12.1 12.1 "sm_80"
for d in "$S 85 8.5" "cuda-12.1 81 8.1"; do set -- $d       # each ptxas reads PTX up to its own ISA
  sed -i "s|^case \"\$A\"|v=\$(sed -n 's/^.version \\\\(.\\\\)\\\\.\\\\(.\\\\)/\\\\1\\\\2/p' \$src 2>/dev/null); [ \"\${v:-0}\" -le $2 ] \|\| { echo \"ptxas \$src, line 1; fatal   : Unsupported .version \${v%?}.\${v#?}; current version is '$3'\" >\&2; exit 255; }\n&|" $1/bin/ptxas; done
mkdir -p site-packages/nvidia_cuda_nvcc_cu12-12.6.85.dist-info; printf 'Name: nvidia-cuda-nvcc-cu12\nVersion: 12.6.85\n' > site-packages/nvidia_cuda_nvcc_cu12-12.6.85.dist-info/METADATA
echo nvidia/cuda_nvcc/bin/ptxas,, > site-packages/nvidia_cuda_nvcc_cu12-12.6.85.dist-info/RECORD
cat > app.py <<'P'
import shutil, subprocess, sys
p = shutil.which("ptxas") or sys.path[1] + "/nvidia/cuda_nvcc/bin/ptxas"   # PATH first, the wheel second
open("k.ptx", "w").write(".version 8.5\n.target sm_80\n")
sys.exit(subprocess.run([p, "--gpu-name=sm_80", "-out=k.cubin", "k.ptx"]).returncode)
P
export PYTHONPATH=$W/site-packages
PATH=$W/cuda-12.1/bin:$PATH $RUN python3 app.py; echo rc $?     # bad
$RUN python3 app.py; echo rc $?                                 # good: pip copy used
