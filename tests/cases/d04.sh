# D04: ptxas bundled with Triton too old; TRITON_PTXAS_PATH (SM121, also SM103, SM110)
# After triton-lang/triton#8539. Expected untraced: expected: fatal, rc 255; then rc 0.
. "$CASES/fakes.sh"
tk site-packages/triton/backends/nvidia 12.8 "sm_90a sm_100a sm_120a"; tk cuda-13.0 13.0 "sm_120a sm_121a"
cat > app.py <<'P'
import os, subprocess
ptxas = os.environ.get("TRITON_PTXAS_PATH") or "site-packages/triton/backends/nvidia/bin/ptxas"
open("k.ptx", "w").write(".version 8.7\n.target sm_121a\n")
print("rc", subprocess.run([ptxas, "--gpu-name=sm_121a", "-out=k.cubin", "k.ptx"]).returncode)
P
PATH=$W/cuda-13.0/bin:$PATH $RUN python3 app.py                      # bad: PATH is not consulted
TRITON_PTXAS_PATH=$W/cuda-13.0/bin/ptxas $RUN python3 app.py         # good
