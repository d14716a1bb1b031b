# An nvcc release that has dropped the GPU's architecture (V100 and CUDA 13); Debian's nvcc in /usr/bin is another story.
. "$CASES/fakes.sh"
tk cuda-13.0 13.0 "sm_75 sm_80 sm_90"; tk cuda-12.8 12.8 "sm_70 sm_75 sm_80 sm_90"
for d in cuda-13.0 cuda-12.8; do sed -i "s|is not defined (fake \$V)|is not defined for option 'gpu-architecture'|" $d/bin/nvcc; done
mkdir -p build
cat > CMakeLike.py <<'P'
import os, shutil, subprocess, sys
nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc")
print("-- The CUDA compiler identification is NVIDIA"); subprocess.run([nvcc, "--version"], stdout=subprocess.DEVNULL)
r = subprocess.run([nvcc, "-arch=sm_70", "-out=build/k.o", "ggml.cu"])
if r.returncode: print("CMake Error: build failed"); sys.exit(2)
P
PATH=$W/cuda-13.0/bin:$PATH $RUN python3 CMakeLike.py
CUDACXX=$W/cuda-12.8/bin/nvcc PATH=$W/cuda-13.0/bin:$PATH $RUN python3 CMakeLike.py
