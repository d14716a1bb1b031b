# A build system finds no CUDA compiler.
. "$CASES/fakes.sh"
tk opt/cuda 12.8 "sm_90"
cat > cmake.py <<'P'
import os, shutil, subprocess, sys
nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc")
if not nvcc: print("CMake Error at CMakeLists.txt:12 (enable_language):\n  No CMAKE_CUDA_COMPILER could be found.\n\n  Tell CMake where to find the compiler by setting either the environment\n  variable \"CUDACXX\"", file=sys.stderr); sys.exit(1)
subprocess.run([nvcc, "-arch=sm_90", "-out=k.o", "k.cu"], check=True)
P
$RUN python3 cmake.py
CUDACXX=$W/opt/cuda/bin/nvcc $RUN python3 cmake.py
