# Healthy: a program that kills its own compilers as it ends for reasons of its own, is told to stop, or ends well; two majors are mapped and no GPU is there.
. "$CASES/fakes.sh"
rt a/libcudart.so.12 libcudart.so.12 12080; rt b/libcudart.so.13 libcudart.so.13 13000
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 100;} int cuDriverGetVersion(int*v){*v=13000;return 0;}'
tk cuda 13.0 "sm_90"; sed -i '3i case "$*" in *--version*) ;; *) sleep 3;; esac' cuda/bin/ptxas
cat > app.py <<'P'
import ctypes, subprocess, sys, time, os, signal
ctypes.CDLL("a/libcudart.so.12"); ctypes.CDLL("b/libcudart.so.13"); ctypes.CDLL("libcuda.so.1").cuInit(0)
try: ctypes.CDLL("libnvidia-ml.so.1")
except OSError: pass
p = subprocess.Popen(["cuda/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"])
time.sleep(0.3)
if "own" in sys.argv: p.kill(); raise FileNotFoundError("model.safetensors")
if "term" in sys.argv: os.kill(os.getpid(), signal.SIGTERM)
p.kill()
P
LD_LIBRARY_PATH=$W/drv $RUN python3 app.py own
LD_LIBRARY_PATH=$W/drv $RUN python3 app.py term
LD_LIBRARY_PATH=$W/drv $RUN python3 app.py
