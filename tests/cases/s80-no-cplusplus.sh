# gcc without g++: the host compiler cannot start its own C++ part.
. "$CASES/fakes.sh"
tk cuda 13.0 "sm_90"; mkdir -p a/bin b; cp "$(readlink -f /usr/bin/gcc)" a/bin/gcc; ln -s /usr/bin/gcc b/gcc; echo 'int x;' > k.cu
sed -i 's|^\[ \$me = nvcc \].*|[ $me = nvcc ] \&\& { gcc -D__CUDACC__ -E -x c++ k.cu > /dev/null \|\| { echo "nvcc fatal   : Failed to preprocess host compiler properties." >\&2; exit 1; }; }|' cuda/bin/nvcc
cat > app.py <<'P'
import subprocess
r = subprocess.run(["cuda/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"]); 
if r.returncode: raise RuntimeError("Error building extension 'fused'")
print("ok")
P
PATH=$W/a/bin:$PATH $RUN python3 app.py
PATH=$W/b:$PATH $RUN python3 app.py
