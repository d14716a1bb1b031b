# More healthy oddities.
. "$CASES/fakes.sh"
tk opt/conda 12.4 "sm_90"; tk usr/local/cuda-12.8 12.8 "sm_90 sm_120"; ln -s cuda-12.8 usr/local/cuda; tk usr/local/cuda-13.0 13.0 "sm_90 sm_120"
mkdir -p site-packages/torch site-packages/torch-2.9.0+cu128.dist-info; echo "cuda = '12.8'" > site-packages/torch/version.py; : > site-packages/torch/__init__.py; printf 'torch/version.py,,\ntorch/__init__.py,,\n' > site-packages/torch-2.9.0+cu128.dist-info/RECORD; printf 'Name: torch\nVersion: 2.9.0+cu128\n' > site-packages/torch-2.9.0+cu128.dist-info/METADATA
rt site-packages/nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12 12080; rt usr/local/cuda-13.0/lib64/libcudart.so.13 libcudart.so.13 13000
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;} int cuDeviceGetAttribute(int*v,int a,int d){*v=a==75?12:0;return 0;}'
so nodrv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 100;} int cuDriverGetVersion(int*v){*v=12040;return 0;}'
export PYTHONPATH=$W/site-packages
# 1: minor version differs from torch (12.8 vs 12.4): a warning of torch, a build, all well
cat > a.py <<'P'
import os, subprocess, warnings, torch.version
subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "--version"], check=True)
warnings.warn("The detected CUDA version (12.4) has a minor version mismatch with the version that was used to compile PyTorch (12.8). Most likely this shouldn't be a problem.")
subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"], check=True)
P
CUDA_HOME=$W/opt/conda $RUN python3 a.py
# 2: no GPU: cuInit 100, a CPU run
LD_LIBRARY_PATH=$W/nodrv:$W/drv $RUN python3 -c 'import ctypes; print("cuInit", ctypes.CDLL("libcuda.so.1").cuInit(0), "no CUDA-capable device is detected -> cpu")'
# 3: /usr/local/cuda link and its target used in turn
$RUN python3 -c 'import subprocess; [subprocess.run([h+"/bin/nvcc","-arch=sm_120","-out=k.o","k.cu"],check=True) for h in ("usr/local/cuda","usr/local/cuda-12.8")]'
# 4: a program that fails in its own way after a clean CUDA start
LD_LIBRARY_PATH=$W/drv $RUN python3 -c 'import ctypes,sys; ctypes.CDLL("libcuda.so.1").cuInit(0); ctypes.CDLL("site-packages/nvidia/cuda_runtime/lib/libcudart.so.12"); sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB")'
# 5: killed by the user
LD_LIBRARY_PATH=$W/drv $RUN timeout 1 python3 -c 'import ctypes,time; ctypes.CDLL("libcuda.so.1").cuInit(0); time.sleep(5)'
# 6: triton's cache: cold, 7: warm with the arch of the GPU
cat > t.py <<'P'
import ctypes, os, subprocess
cu = ctypes.CDLL("libcuda.so.1"); v = ctypes.c_int(); cu.cuDeviceGetAttribute(ctypes.byref(v), 75, 0); cu.cuDeviceGetAttribute(ctypes.byref(v), 76, 0)
d = ".triton/cache/KEY"; f = d + "/k.cubin"
if not os.path.exists(f):
    os.makedirs(d); open(d + "/k.json", "w").write('{"target": {"backend": "cuda", "arch": 120}}')
    subprocess.run(["usr/local/cuda/bin/ptxas", "--gpu-name=sm_120", "-out=" + f, "k.ptx"], check=True)
open(f).read(); open(d + "/k.json").read()
P
LD_LIBRARY_PATH=$W/drv $RUN python3 t.py
LD_LIBRARY_PATH=$W/drv $RUN python3 t.py
# 8: a test suite that expects failures of the compiler
cat > u.py <<'P'
import subprocess, unittest
class T(unittest.TestCase):
    def test_bad_arch(self): self.assertNotEqual(subprocess.run(["usr/local/cuda/bin/nvcc", "-arch=sm_999", "k.cu"]).returncode, 0)
    def test_ok(self): subprocess.run(["usr/local/cuda/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"], check=True)
unittest.main()
P
$RUN python3 u.py
# 9: ninja from PATH missing, python -m ninja works
$RUN python3 -c '
import subprocess, sys
try: subprocess.run(["ninja-none", "--version"])
except FileNotFoundError: subprocess.run([sys.executable, "-c", "print(1)"], check=True)'
# 10: lock taken, released, taken again by two processes
cat > v.py <<'P'
import os, subprocess, sys, time
d = ".cache/torch_extensions/py312_cu128/x"; os.makedirs(d, exist_ok=True); l = d + "/lock"
if len(sys.argv) == 1: ps = [subprocess.Popen([sys.executable, "v.py", str(i)]) for i in range(3)]; sys.exit(max(p.wait() for p in ps))
while True:
    try: os.close(os.open(l, os.O_CREAT | os.O_EXCL)); break
    except FileExistsError: time.sleep(0.05)
time.sleep(0.3); os.remove(l)
P
$RUN python3 v.py
# 11: compat that works
so cuda-13.0/compat/libcuda.so.580.65.06 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;}'; ln -s libcuda.so.580.65.06 cuda-13.0/compat/libcuda.so.1
LD_LIBRARY_PATH=$W/cuda-13.0/compat:$W/drv $RUN python3 -c 'import ctypes; print(ctypes.CDLL("libcuda.so.1").cuInit(0))'
# 12: an older driver than the toolkit, minor compatibility, cubins only
LD_LIBRARY_PATH=$W/nodrv $RUN python3 -c 'import ctypes,subprocess; v=ctypes.c_int(); ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(v)); subprocess.run(["usr/local/cuda/bin/nvcc","-arch=sm_120","-out=k.cubin","k.cu"],check=True)'
# 13: sys.exit(3) by a linter, with import errors told as skipped
$RUN python3 -c '
import ctypes, logging, sys
for m in ("libnccl.so.2", "libcudnn.so.9"):
    try: ctypes.CDLL(m)
    except OSError as e: logging.info("skip %s", e)
sys.exit(3)'
# 14: a shell that finds no nvcc, and a program that does without
$RUN python3 -c 'import subprocess; print(subprocess.run("nvcc-none --version; nvcc --version || echo no nvcc", shell=True, env={**__import__("os").environ, "PATH": "/usr/bin:/bin"}).returncode)'
