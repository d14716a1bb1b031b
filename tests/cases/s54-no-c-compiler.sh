# Neither CC nor PATH has a compiler; CC names a file that is not there.
. "$CASES/fakes.sh"
mkdir -p pybin ccbin; printf '#!/bin/sh\nexit 0\n' > ccbin/gcc; chmod +x ccbin/gcc
cat > app.py <<'P'
import os, shutil, subprocess
cc = os.environ.get("CC") or shutil.which("clang") or shutil.which("gcc") 
if cc is None: raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.")
subprocess.check_call([cc, "main.c", "-O3", "-shared", "-fPIC", "-o", "cuda_utils.so"])
P
PY=$(python3 -c 'import sys; print(sys.executable)')
PATH=$W/pybin $RUN $PY app.py
PATH=$W/ccbin $RUN $PY app.py
PATH=$W/pybin CC=$W/nocc/gcc-13 $RUN $PY app.py
