# Healthy oddities, one process each.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_80 sm_90"; tk cuda-13.0 13.0 "sm_80 sm_90 sm_120"; tk cuda-12.8 12.8 "sm_90"
rt a/libcudart.so.12 libcudart.so.12 12080; rt b/libcudart.so.12 libcudart.so.12 12080; rt c/libcudart.so.13 libcudart.so.13 13000
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;} int cuDeviceGetAttribute(int*v,int a,int d){*v=a==75?9:0;return 0;} int cuModuleLoadData(void**m,const char*p){return 0;}'
# 1: unused old nvcc asked for its version, then the new one compiles
cat > a.py <<'P'
import subprocess, shutil, os
subprocess.run(["cuda-12.4/bin/nvcc", "--version"], stdout=subprocess.DEVNULL); subprocess.run(["ldconfig", "-p"], stdout=subprocess.DEVNULL); subprocess.run("which nvcc; nvcc --list-gpu-arch", shell=True)
subprocess.run(["cuda-13.0/bin/nvcc", "-arch=sm_120", "-out=k.o", "k.cu"], check=True)
P
PATH=$W/cuda-12.4/bin:$PATH $RUN python3 a.py
# 2: a list of library names, of which the last is there
cat > b.py <<'P'
import ctypes
for n in ("libcuda.so", "libcudart.so", "libcudart.so.13", "libcudart.so.11.0", "libcudart.so.12", "libnvrtc.so.13", "libnvrtc.so", "libcudnn.so.8", "libnccl.so", "libcuda.so.1"):
    try: ctypes.CDLL(n); print("have", n)
    except OSError as e: print("no", n, e)
P
LD_LIBRARY_PATH=$W/a:$W/drv $RUN python3 b.py
# 3: everything is missing and nobody minds
$RUN python3 b.py
# 4: two copies of one major
LD_LIBRARY_PATH=$W/a $RUN python3 -c 'import ctypes,os; ctypes.CDLL("libcudart.so.12"); ctypes.CDLL(os.path.abspath("b/libcudart.so.12"))'
# 5: two majors, both in order
$RUN python3 -c 'import ctypes; [ctypes.CDLL(p) for p in ("a/libcudart.so.12","c/libcudart.so.13")]'
# 6: a compile probe that fails, then the right one
cat > c.py <<'P'
import subprocess
for a in ("sm_120", "sm_90"):
    r = subprocess.run(["cuda-12.4/bin/nvcc", "-arch=" + a, "-out=k.o", "k.cu"], capture_output=True, text=True)
    print(a, r.returncode, r.stderr)
    if not r.returncode: break
P
$RUN python3 c.py
# 7: CUDA_HOME with a trailing slash; both CUDA_HOME and CUDA_PATH set to different toolkits, one used throughout
CUDA_PATH=$W/cuda-12.4 CUDA_HOME=$W/cuda-13.0/ $RUN python3 -c 'import os,subprocess; h=os.environ["CUDA_HOME"]; subprocess.run([h+"/bin/nvcc","--version"],check=True); subprocess.run([h+"/bin/nvcc","-arch=sm_90","-out=k.o","k.cu"],check=True)'
# 8: a log that quotes an old error and a help text
cat > d.py <<'P'
import logging, sys, warnings
logging.warning("Previously: RuntimeError: SM 12.x requires CUDA >= 12.9 (fixed in 0.7.1)")
print("usage: needs libcudart.so.12; if you see 'cannot open shared object file' set LD_LIBRARY_PATH", file=sys.stderr)
print("test_nvcc_fatal: nvcc fatal   : Unsupported gpu architecture 'compute_999' ... ok"); print("FlashInfer requires GPUs with sm75 or higher: yes"); warnings.warn("requires CUDA >= 11.8 or newer for best speed")
print("CUDA error: 0", "Permission denied is handled", "no kernel image is available: 0 cases")
P
$RUN python3 d.py
# 9: no nvcc, an AOT build, CPU run
$RUN python3 -c 'import shutil,os; print(shutil.which("nvcc"), os.path.exists("/usr/local/cuda/bin/nvcc"))'
# 10: a failing program that has nothing to do with CUDA, with two toolkits and a missing library on the way
cat > e.py <<'P'
import ctypes, subprocess, sys
try: ctypes.CDLL("libcudart.so.13")
except OSError: pass
subprocess.run(["cuda-12.4/bin/nvcc", "--version"]); subprocess.run(["cuda-13.0/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"], check=True)
raise ValueError("the model's config has no vocab_size")
P
$RUN python3 e.py
# 11: the ptxas on PATH is old and never used
tk site-packages/triton/backends/nvidia 12.8 "sm_90a"
PATH=$W/cuda-12.4/bin:$PATH $RUN python3 -c 'import subprocess; subprocess.run(["site-packages/triton/backends/nvidia/bin/ptxas","--gpu-name=sm_90a","-out=k.cubin","k.ptx"],check=True)'
# 12: parallel ranks, each with its own cache key; a lock that is waited for and got
cat > f.py <<'P'
import fcntl, multiprocessing as mp, os, subprocess, time
def rank(r):
    os.makedirs(".triton/cache", exist_ok=True); f = open(".triton/cache/x.lock", "w"); fcntl.flock(f, fcntl.LOCK_EX)
    if not os.path.exists(".triton/cache/K.cubin"): subprocess.run(["site-packages/triton/backends/nvidia/bin/ptxas", "--gpu-name=sm_90a", "-out=.triton/cache/K.cubin", "k.ptx"], check=True)
    fcntl.flock(f, fcntl.LOCK_UN)
if __name__ == "__main__":
    ps = [mp.Process(target=rank, args=(r,)) for r in range(4)]; [p.start() for p in ps]; [p.join() for p in ps]
P
$RUN python3 f.py
# 13: cleaned environment for a probe only
$RUN python3 -c 'import subprocess; subprocess.run(["cuda-13.0/bin/nvcc","--version"],env={"PATH":"/usr/bin:/bin"},check=True)'
# 14: LD_LIBRARY_PATH with a newer library of the same kind: shadowing without harm
so w/nvjitlink/libnvJitLink.so.12 libnvJitLink.so.12 'int nvJitLinkVersion(int*a,int*b){*a=12;*b=4;return 0;} int __nvJitLinkComplete_12_4(void){return 0;}'; so n/libnvJitLink.so.12 libnvJitLink.so.12 'int nvJitLinkVersion(int*a,int*b){*a=12;*b=9;return 0;} int __nvJitLinkComplete_12_4(void){return 0;}'
so w/cusparse/libcusparse.so.12 libcusparse.so.12 'int __nvJitLinkComplete_12_4(void); int f(void){return __nvJitLinkComplete_12_4();}' -Lw/nvjitlink -l:libnvJitLink.so.12 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../nvjitlink'
LD_LIBRARY_PATH=$W/n $RUN python3 -c 'import ctypes; ctypes.CDLL("w/cusparse/libcusparse.so.12").f()'
# 15: a cold build, 16: the warm one, 17: a changed toolkit that is rebuilt as it should
cat > g.py <<'P'
import os, subprocess
h = os.environ["CUDA_HOME"]; d = ".cache/torch_extensions/py312_cu130/e"; os.makedirs(d, exist_ok=True)
new = f"cuda_home = {h}\nnvcc = {h}/bin/nvcc\n"; f = d + "/build.ninja"
if not os.path.exists(f) or open(f).read() != new:
    open(f, "w").write(new); subprocess.run([h + "/bin/nvcc", "-arch=sm_90", "-out=" + d + "/e.so", "e.cu"], check=True)
open(d + "/e.so").read()
P
CUDA_HOME=$W/cuda-13.0 $RUN python3 g.py
CUDA_HOME=$W/cuda-13.0 $RUN python3 g.py
CUDA_HOME=$W/cuda-12.8 $RUN python3 g.py
# 18: exits 1 after a handled stub: link-time use of stubs only
so cuda-13.0/lib64/stubs/libcuda.so libcuda.so.1 'int cuInit(unsigned f){return 34;}'
cat > l.py <<'P'
import subprocess, ctypes
open("u.c","w").write("int cuInit(unsigned); int f(void){return cuInit(0);}")
subprocess.run(["cc","-shared","-fPIC","u.c","-o","u.so","-Lcuda-13.0/lib64/stubs","-lcuda"],check=True); print(ctypes.CDLL("./u.so").f())
P
LD_LIBRARY_PATH=$W/drv $RUN python3 l.py
