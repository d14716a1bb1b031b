# D15: cache invalidated without a real change; startup takes many minutes
# After flashinfer-ai/flashinfer#4884. Expected untraced: expected: 3 objects, 3 objects again, hit.
. "$CASES/fakes.sh"
tk cuda-13.2 13.2 "sm_100a"; ln -s cuda-13.2 cuda
cat > app.py <<'P'
import os, shutil, subprocess
home = os.path.dirname(os.path.dirname(shutil.which("nvcc")))       # text, not realpath
new, f = f"cuda_home = {home}\n", "cache/build.ninja"
os.makedirs("cache", exist_ok=True)
if not os.path.exists(f) or open(f).read() != new:
    open(f, "w").write(new)
    for i in range(3): subprocess.run([home + "/bin/nvcc", "-arch=sm_100a", f"-out=cache/{i}.o", f"{i}.cu"], check=True)
    print("rebuilt 3 objects with", home)
else: print("cache hit")
P
PATH=$W/cuda-13.2/bin:$PATH $RUN python3 app.py           # login shell: first build
PATH=$W/cuda/bin:$PATH $RUN python3 app.py                # service: bad, full rebuild of the same thing
PATH=$W/cuda/bin:$PATH $RUN python3 app.py                # hit
