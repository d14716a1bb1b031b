# A killed build left the lock; the server waits and is ended from outside.
. "$CASES/fakes.sh"
mkdir -p ext/py312_cu130/fused_adam; : > ext/py312_cu130/fused_adam/lock
cat > app.py <<'P'
import os, time
d = os.environ["TORCH_EXTENSIONS_DIR"] + "/py312_cu130/fused_adam"; os.makedirs(d, exist_ok=True)
def try_acquire():
    try: return os.open(d + "/lock", os.O_CREAT | os.O_EXCL)
    except FileExistsError: return None
fd = try_acquire()
if fd is None:
    while os.path.exists(d + "/lock"): time.sleep(0.1)
else:
    open(d + "/fused_adam.so", "w").close(); os.close(fd); os.remove(d + "/lock")
print("loaded")
P
export TORCH_EXTENSIONS_DIR=$W/ext
$RUN timeout 3 python3 app.py
rm ext/py312_cu130/fused_adam/lock; $RUN timeout 3 python3 app.py
