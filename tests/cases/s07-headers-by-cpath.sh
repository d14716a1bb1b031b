# CPATH puts the headers of another release before the compiler's own.
. "$CASES/fakes.sh"
for v in "12.4 12040" "13.0 13000"; do set -- $v; tk cuda-$1 $1 "sm_90"; echo "#define CUDART_VERSION $2" > cuda-$1/include/cuda_runtime_api.h; done
sed -i 's|^\[ -n "$out" \].*|cat > t.c <<C\n#include <cuda_runtime_api.h>\n#if CUDART_VERSION != 13000\n#error "CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths"\n#endif\nC\ncc -fsyntax-only -idirafter "${0%/bin/*}/include" t.c \|\| exit 1; exit 0|' cuda-13.0/bin/nvcc
cat > app.py <<'P'
import os, subprocess, sys
sys.exit(subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"]).returncode)
P
CUDA_HOME=$W/cuda-13.0 CPATH=$W/cuda-12.4/include $RUN python3 app.py
CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
