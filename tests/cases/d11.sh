# D11: headers of one release, NVRTC of another; conda environment on PATH but not activated
# After cupy/cupy#9962. Expected untraced: expected: rc 1 with system headers; rc 0 with the environment's.
. "$CASES/fakes.sh"
so env/lib/libnvrtc.so.12 libnvrtc.so.12 'int nvrtcVersion(int*a,int*b){*a=12;*b=9;return 0;}'
mkdir -p env/targets/include usr-local-cuda/include
echo '#define CUDART_VERSION 12090' > env/targets/include/cuda_runtime_api.h; echo '#define CUDART_VERSION 12040' > usr-local-cuda/include/cuda_runtime_api.h
echo 'typedef struct{char x;} fp8_e8m0;' > env/targets/include/cuda_fp8.h; echo '/* a release without the type */' > usr-local-cuda/include/cuda_fp8.h
cat > app.py <<'P'
import ctypes, os, subprocess
a, b = ctypes.c_int(), ctypes.c_int(); ctypes.CDLL("env/lib/libnvrtc.so.12").nvrtcVersion(ctypes.byref(a), ctypes.byref(b))
p = os.environ.get("CONDA_PREFIX")
inc = p + "/targets/include" if p else "usr-local-cuda/include"      # falls back to the system tree
r = subprocess.run(["cc", "-xc", "-fsyntax-only", "-I" + inc, "-"], input="#include <cuda_runtime_api.h>\n#include <cuda_fp8.h>\nfp8_e8m0 v;\n", text=True)
print(f"nvrtc {a.value}.{b.value} headers {inc} rc {r.returncode}")
P
PATH=$W/env/bin:$PATH $RUN python3 app.py                 # bad: env on PATH but not "activated"
CONDA_PREFIX=$W/env $RUN python3 app.py                   # good
