# The home directory is not writable: the kernel cache cannot be made (containers run by another user).
. "$CASES/fakes.sh"
tk site-packages/triton/backends/nvidia 12.8 "sm_90a"; : > nohome; mkdir home
cat > app.py <<'P'
import os, subprocess
d = os.path.join(os.environ.get("TRITON_CACHE_DIR") or os.path.join(os.path.expanduser("~"), ".triton", "cache"), "ABCDEF")
os.makedirs(d, exist_ok=True)
subprocess.run(["site-packages/triton/backends/nvidia/bin/ptxas", "--gpu-name=sm_90a", f"-out={d}/k.cubin", "k.ptx"], check=True)
P
HOME=$W/nohome $RUN python3 app.py
HOME=$W/home $RUN python3 app.py
HOME=$W/nohome TRITON_CACHE_DIR=$W/cache $RUN python3 app.py
