# A compiler that is run with an empty environment cannot be watched from inside.
. "$CASES/fakes.sh"
tk cuda-13.0 13.0 "sm_90a"
cat > app.py <<'P'
import subprocess, sys
subprocess.run(["cuda-13.0/bin/nvcc", "-arch=sm_90a", "-out=k.o", "k.cu"], check=True, env={} if sys.argv[1:] else None)
P
$RUN python3 app.py clear
$RUN python3 app.py
