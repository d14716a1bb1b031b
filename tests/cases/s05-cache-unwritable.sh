# The cache directory cannot be made.
. "$CASES/fakes.sh"
mkdir good; : > bad
cat > app.py <<'P'
import os
d = os.environ["TRITON_HOME"] + "/.triton/cache/abc"
os.makedirs(d, exist_ok=True); open(d + "/k.cubin", "w").write("x"); print("written")
P
TRITON_HOME=$W/bad $RUN python3 app.py
TRITON_HOME=$W/good $RUN python3 app.py
