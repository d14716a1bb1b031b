# A JIT links with the driver in an image without one.
. "$CASES/fakes.sh"
so cuda-13.0/lib64/stubs/libcuda.so libcuda.so.1 'int cuInit(unsigned f){return 34;}'; rt cuda-13.0/lib64/libcudart.so.13 libcudart.so.13 13000; ln -s libcudart.so.13 cuda-13.0/lib64/libcudart.so
cat > app.py <<'P'
import os, subprocess, sys
h = os.environ["CUDA_HOME"]; open("k.c", "w").write("int cuInit(unsigned); int f(void){return cuInit(0);}")
r = subprocess.run(["c++", "-xc", "k.c", "-xnone", "-shared", "-fPIC", "-o", "k.so", f"-L{h}/lib64"] + sys.argv[1:] + ["-lcudart", "-lcuda"], capture_output=True, text=True)
if r.returncode: raise RuntimeError("Ninja build failed:\n" + r.stderr)
print("ok")
P
export CUDA_HOME=$W/cuda-13.0
$RUN python3 app.py
$RUN python3 app.py -L$W/cuda-13.0/lib64/stubs
LIBRARY_PATH=$W/cuda-13.0/lib64/stubs $RUN python3 app.py
