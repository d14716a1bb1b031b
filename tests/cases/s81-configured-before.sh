# CMakeCache.txt keeps the compiler of another day; CUDACXX names a new one and has no effect.
. "$CASES/fakes.sh"
tk cuda-12.2 12.2 "sm_90"; tk cuda-13.0 13.0 "sm_90 sm_120"
for d in cuda-12.2 cuda-13.0; do sed -i "s|Value .\$arch. is not defined (fake \$V)|Unsupported gpu architecture 'compute_120'|" $d/bin/nvcc; done
mkdir build; printf 'CMAKE_CUDA_COMPILER:FILEPATH=%s\nCMAKE_CUDA_ARCHITECTURES:STRING=120\n' $W/cuda-12.2/bin/nvcc > build/CMakeCache.txt
cat > cmake.py <<'P'
import os, re, subprocess, sys
f = "build/CMakeCache.txt"
m = re.search(r"CMAKE_CUDA_COMPILER:\w+=(.*)", open(f).read()) if os.path.exists(f) else None
nvcc = m[1] if m else os.environ["CUDACXX"]
r = subprocess.run([nvcc, "-arch=sm_120", "-out=build/k.o", "k.cu"])
if r.returncode: print("CMake Error: CMAKE_CUDA_COMPILER failed", file=sys.stderr)
sys.exit(r.returncode)
P
export CUDACXX=$W/cuda-13.0/bin/nvcc
$RUN python3 cmake.py
rm build/CMakeCache.txt; $RUN python3 cmake.py
