# A compiler that says what it needs: ptxas does not know the PTX that nvcc's front end writes (PATH mixes two toolkits).
. "$CASES/fakes.sh"
tk cuda-13.0 13.0 "sm_90a"; tk cuda-12.4 12.4 "sm_90a"
sed -i 's|^\[ \$me = nvcc \].*|[ $me = nvcc ] \&\& { printf ".version 9.0\\n.target sm_90a\\n" > k.ptx; ptxas --gpu-name=$arch -out=k.cubin k.ptx \|\| exit; }|' cuda-13.0/bin/nvcc
for d in "cuda-13.0 90 9.0" "cuda-12.4 84 8.4"; do set -- $d
  sed -i "s|^case \"\$A\"|v=\$(sed -n 's/^.version \\\\(.\\\\)\\\\.\\\\(.\\\\)/\\\\1\\\\2/p' \$src 2>/dev/null); [ \"\${v:-0}\" -le $2 ] \|\| { echo \"ptxas \$src, line 1; fatal   : Unsupported .version \${v%?}.\${v#?}; current version is '$3'\" >\&2; exit 255; }\n&|" $1/bin/ptxas; done
cat > app.py <<'P'
import os, subprocess, sys
sys.exit(subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90a", "-out=k.cubin", "k.cu"]).returncode)
P
CUDA_HOME=$W/cuda-13.0 PATH=$W/cuda-12.4/bin:$PATH $RUN python3 app.py
CUDA_HOME=$W/cuda-13.0 PATH=$W/cuda-13.0/bin:$PATH $RUN python3 app.py
