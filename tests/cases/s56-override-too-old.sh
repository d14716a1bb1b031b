# The override names a ptxas that is older than the bundled one.
. "$CASES/fakes.sh"
tk site-packages/triton/backends/nvidia 12.9 "sm_120a"; tk cuda-12.6 12.6 "sm_90a"; mv site-packages/triton/backends/nvidia/bin/ptxas site-packages/triton/backends/nvidia/bin/ptxas-blackwell
cat > app.py <<'P'
import os, subprocess
p = os.environ.get("TRITON_PTXAS_BLACKWELL_PATH") or "site-packages/triton/backends/nvidia/bin/ptxas-blackwell"
open("k.ptx", "w").write(".version 8.7\n.target sm_120a\n")
r = subprocess.run([p, "-lineinfo", "-v", "--gpu-name=sm_120a", "k.ptx", "-out=k.cubin"], capture_output=True, text=True)
if r.returncode: raise RuntimeError("PTXASError: PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n" + r.stderr)
P
TRITON_PTXAS_BLACKWELL_PATH=$W/cuda-12.6/bin/ptxas $RUN python3 app.py
$RUN python3 app.py
