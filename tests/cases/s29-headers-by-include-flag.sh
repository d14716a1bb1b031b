# Headers of another toolkit come in through the build's own -I; CCCL refuses.
. "$CASES/fakes.sh"
for v in 12.9 13.0; do tk cuda-$v $v "sm_90a"; done
echo '#define CUDART_VERSION 12090' > cuda-12.9/include/cuda_runtime_api.h; echo '#define CUDART_VERSION 13000' > cuda-13.0/include/cuda_runtime_api.h
for v in 12.9 13.0; do n=$(echo $v | awk -F. "{print \$1*1000+\$2*10}"); sed -i "s|^\[ \$me = nvcc \].*|[ \$me = nvcc ] \&\& { inc=; for a in \"\$@\"; do case \$a in -I*) inc=\"\$inc \$a\";; esac; done; printf '#include <cuda_runtime_api.h>\\\\n#if CUDART_VERSION != $n\\\\n#error CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths\\\\n#endif\\\\n' \| cc -xc -E \$inc -I\${0%/*}/../include - >/dev/null \|\| exit 1; }|" cuda-$v/bin/nvcc; done
cat > app.py <<'P'
import os, subprocess, sys
h = os.environ["CUDA_HOME"]; extra = os.environ.get("EXTRA_INC", h + "/include")
r = subprocess.run([h + "/bin/nvcc", "-I" + extra, "-arch=sm_90a", "-out=k.o", "k.cu"]); sys.exit(r.returncode)
P
CUDA_HOME=$W/cuda-13.0 EXTRA_INC=$W/cuda-12.9/include $RUN python3 app.py
CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
