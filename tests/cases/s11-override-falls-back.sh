# TRITON_PTXAS_PATH names a file that does not run; the bundled copy is taken without a word and is too old.
. "$CASES/fakes.sh"
tk site-packages/triton/backends/nvidia 12.8 "sm_90a"; tk cuda-13.0 13.0 "sm_90a sm_121a"
cat > app.py <<'P'
import os, subprocess, sys
ptxas = "site-packages/triton/backends/nvidia/bin/ptxas"
try: subprocess.run([os.environ["TRITON_PTXAS_PATH"], "--version"], check=True, stdout=subprocess.DEVNULL); ptxas = os.environ["TRITON_PTXAS_PATH"]
except Exception: pass
sys.exit(subprocess.run([ptxas, "--gpu-name=sm_121a", "-out=k.cubin", "k.ptx"]).returncode)
P
TRITON_PTXAS_PATH=$W/cuda-13.1/bin/ptxas $RUN python3 app.py
TRITON_PTXAS_PATH=$W/cuda-13.0/bin/ptxas $RUN python3 app.py
