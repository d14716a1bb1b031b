# FLASHINFER_NVCC replaces the compiler and not the one that is asked for its release.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_90a"; tk cuda-13.0 13.0 "sm_90a"
sed -i "s|^case \"\$A\"|for a in \"\$@\"; do case \$a in -static-global*) echo \"nvcc fatal   : Unknown option '\$a'\" >\&2; exit 1;; esac; done\n&|" cuda-12.4/bin/nvcc
mkdir -p site-packages/flashinfer site-packages/flashinfer_python-0.7.2.dist-info; printf 'Name: flashinfer-python\nVersion: 0.7.2\n' > site-packages/flashinfer_python-0.7.2.dist-info/METADATA; echo flashinfer/__init__.py,, > site-packages/flashinfer_python-0.7.2.dist-info/RECORD
cat > site-packages/flashinfer/__init__.py <<'P'
import os, re, subprocess
def build():
    h = os.environ["CUDA_HOME"]; v = re.search(r"release (\d+)\.(\d+)", subprocess.check_output([h + "/bin/nvcc", "--version"], text=True))
    flags = ["-static-global-template-stub=false"] if (int(v[1]), int(v[2])) >= (12, 8) else []
    r = subprocess.run([os.environ.get("FLASHINFER_NVCC", h + "/bin/nvcc"), *flags, "-arch=sm_90a", "-out=k.o", "k.cu"], capture_output=True, text=True)
    if r.returncode: raise RuntimeError("Ninja build failed. Ninja output:\n" + r.stderr)
P
echo 'import flashinfer; flashinfer.build(); print("ok")' > app.py
export PYTHONPATH=$W/site-packages
CUDA_HOME=$W/cuda-13.0 FLASHINFER_NVCC=$W/cuda-12.4/bin/nvcc $RUN python3 app.py
CUDA_HOME=$W/cuda-13.0 FLASHINFER_NVCC=$W/cuda-13.0/bin/nvcc $RUN python3 app.py
