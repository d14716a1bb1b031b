# The bundled ptxas crashes; the one that the override names does not.
. "$CASES/fakes.sh"; T=site-packages/triton/backends/nvidia
tk $T 12.8 "sm_120a"; tk cuda-13.0 13.0 "sm_120a"; sed -i '3i case "$*" in *--gpu-name*) kill -11 $$;; esac' $T/bin/ptxas
cat > app.py <<'P'
import os, subprocess
p = os.environ.get("TRITON_PTXAS_PATH") or "site-packages/triton/backends/nvidia/bin/ptxas"
open("k.ptx", "w").write(".version 8.7\n.target sm_120a\n")
r = subprocess.run([p, "--gpu-name=sm_120a", "-out=k.cubin", "k.ptx"])
if r.returncode < 0: raise RuntimeError("`ptxas` raised SIGSEGV")
print("rc", r.returncode)
P
$RUN python3 app.py
TRITON_PTXAS_PATH=$W/cuda-13.0/bin/ptxas $RUN python3 app.py
