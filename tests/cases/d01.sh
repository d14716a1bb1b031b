# D01: arch rejection (SM120); nvcc older than torch's CUDA
# After vllm-project/vllm#50705. Expected untraced: expected: first run: misleading exception; second run: arch list printed.
. "$CASES/fakes.sh"
tk cuda-12.8 12.8 "sm_90 sm_100 sm_120"; tk cuda-13.0 13.0 "sm_90 sm_100 sm_120 sm_121"
mkdir -p site-packages/torch site-packages/torch-2.11.0+cu130.dist-info site-packages/flashinfer site-packages/flashinfer_python-0.6.8.dist-info
echo "cuda = '13.0'" > site-packages/torch/version.py; : > site-packages/torch/__init__.py; echo torch/version.py,, > site-packages/torch-2.11.0+cu130.dist-info/RECORD
printf 'Name: torch\nVersion: 2.11.0+cu130\n' > site-packages/torch-2.11.0+cu130.dist-info/METADATA
printf 'Name: flashinfer-python\nVersion: 0.6.8\n' > site-packages/flashinfer_python-0.6.8.dist-info/METADATA; echo flashinfer/__init__.py,, > site-packages/flashinfer_python-0.6.8.dist-info/RECORD
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;} int cuDeviceGetAttribute(int*v,int a,int d){*v=a==75?12:0;return 0;}'
cat > site-packages/flashinfer/__init__.py <<'P'
import ctypes, os, re, shutil, subprocess, sys
def capability():
    cu, v = ctypes.CDLL("libcuda.so.1"), (ctypes.c_int(), ctypes.c_int()); cu.cuInit(0)
    for x, attribute in zip(v, (75, 76)): cu.cuDeviceGetAttribute(ctypes.byref(x), attribute, 0)
    return v[0].value, v[1].value
def nvcc_version():
    home = os.environ.get("CUDA_HOME") or os.path.dirname(os.path.dirname(shutil.which("nvcc")))
    txt = subprocess.check_output([home + "/bin/nvcc", "--version"], text=True)
    return tuple(map(int, re.search(r"release (\d+)\.(\d+)", txt).groups()))
def archs():
    try:
        if capability()[0] == 12 and nvcc_version() < (12, 9): raise RuntimeError("SM 12.x requires CUDA >= 12.9.")
        return [capability()]
    except Exception as e:                          # the true reason is only a log line
        print("Failed to get device capability:", e, file=sys.stderr); return []
P
cat > app.py <<'P'
import flashinfer, torch.version                    # torch says 13.0 and is not asked
found = flashinfer.archs()
if not found: raise SystemExit("RuntimeError: needs GPUs with sm75 or higher")
print("arch list", found)
P
export PYTHONPATH=$W/site-packages LD_LIBRARY_PATH=$W/drv
PATH=$W/cuda-12.8/bin:$PATH $RUN python3 app.py          # bad: misleading message
CUDA_HOME=$W/cuda-13.0 PATH=$W/cuda-12.8/bin:$PATH $RUN python3 app.py   # good
