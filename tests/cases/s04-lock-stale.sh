# A build that was killed left its lock file; the next one waits for it.
. "$CASES/fakes.sh"
mkdir -p .cache/torch_extensions/py312_cu130/ext; : > .cache/torch_extensions/py312_cu130/ext/lock
cat > app.py <<'P'
import os, sys, time
lock = ".cache/torch_extensions/py312_cu130/ext/lock"
for _ in range(20):
    try: os.close(os.open(lock, os.O_CREAT | os.O_EXCL)); break
    except FileExistsError: time.sleep(0.1)
else: sys.exit("TimeoutError: waiting for the build lock")
os.remove(lock); print("built")
P
$RUN python3 app.py
rm .cache/torch_extensions/py312_cu130/ext/lock; $RUN python3 app.py
