# Triton compiles a helper for Python, whose headers are not installed.
. "$CASES/fakes.sh"
mkdir -p inc; echo > inc/Python.h; mkdir -p site-packages/triton/runtime site-packages/triton-3.5.0.dist-info
printf 'Name: triton\nVersion: 3.5.0\n' > site-packages/triton-3.5.0.dist-info/METADATA; echo triton/runtime/build.py,, > site-packages/triton-3.5.0.dist-info/RECORD; : > site-packages/triton/__init__.py; : > site-packages/triton/runtime/__init__.py
cat > site-packages/triton/runtime/build.py <<'P'
import os, subprocess
def build(inc):
    open("main.c", "w").write("#include <stdlib.h>\n#include <Python.h>\nint f(void){return 1;}\n")
    subprocess.check_call(["gcc", "main.c", "-O3", "-shared", "-fPIC", "-o", "cuda_utils.so", "-I" + inc])
P
echo 'import sys; sys.path.insert(0, "site-packages"); from triton.runtime.build import build; build(sys.argv[1]); print("ok")' > app.py
$RUN python3 app.py /usr/include/python3.99
$RUN python3 app.py inc
