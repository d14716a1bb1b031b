# Link step of a JIT build against a wheel tree: lib64 does not exist there, and no unversioned libcudart.so.
. "$CASES/fakes.sh"
S=site-packages/nvidia/cu13; tk $S 13.0 "sm_90a"; rmdir $S/lib64; tk cuda-13.0 13.0 "sm_90a"
rt $S/lib/libcudart.so.13 libcudart.so.13 13000; rt cuda-13.0/lib64/libcudart.so.13 libcudart.so.13 13000; ln -s libcudart.so.13 cuda-13.0/lib64/libcudart.so
echo 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' > k.c
cat > app.py <<'P'
import os, subprocess, sys
h = os.environ["CUDA_HOME"]
subprocess.run([h + "/bin/nvcc", "-arch=sm_90a", "-out=k.cubin", "k.cu"], check=True)
r = subprocess.run(["c++", "-shared", "-fPIC", "-x", "c", "k.c", "-o", "k.so", "-L" + h + "/lib64", "-lcudart"], capture_output=True, text=True)
if r.returncode: raise RuntimeError("Ninja build failed.\n" + r.stderr)
print("linked")
P
CUDA_HOME=$W/$S $RUN python3 app.py
CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
