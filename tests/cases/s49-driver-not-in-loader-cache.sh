# Triton looks for the driver in the loader cache and in LD_LIBRARY_PATH.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;}'
cat > app.py <<'P'
import os, subprocess
libs = subprocess.check_output(["/sbin/ldconfig", "-p"]).decode()
dirs = [l.split()[-1] for l in libs.splitlines() if "libcuda.so.1" in l]
env = os.getenv("LD_LIBRARY_PATH")
if env and not dirs: dirs = [d for d in env.split(":") if os.path.exists(os.path.join(d, "libcuda.so.1"))]
msg = "libcuda.so cannot found!\n"
msg += "Please make sure GPU is set up and then run \"/sbin/ldconfig\" (requires sudo) to refresh the linker cache."
assert any(os.path.exists(os.path.join(p, "libcuda.so.1")) for p in dirs), msg
P
LD_LIBRARY_PATH=$W $RUN python3 app.py
LD_LIBRARY_PATH=$W/drv $RUN python3 app.py
