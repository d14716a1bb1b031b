# A build system compares the times of files: a package that was installed again, a checkout, a layer of an image makes
# every source newer than what was made of it. That is no fault; the build says why it ran.
. "$CASES/fakes.sh"
tk cuda 13.0 "sm_90"; mkdir src out
cat > ninja.py <<'P'
import os, subprocess
if not os.path.exists("out/page.o") or os.path.getmtime("src/page.cu") > os.path.getmtime("out/page.o"):
    subprocess.run(["sh", "-c", "cuda/bin/nvcc -arch=sm_90 -c src/page.cu -o out/page.o"], check=True)
P
echo kernel > src/page.cu; touch -d '2026-01-01' src/page.cu
# 1: nothing was there
$RUN python3 ninja.py
# 2: made a month later; the source was written again after that, with the same text
touch -d '2026-02-01 00:00' out/page.o; touch -d '2026-02-01 01:30' src/page.cu
$RUN python3 ninja.py
# 3: made after the source, and compiled anew for another reason
touch -d '2026-03-01' out/page.o
$RUN sh -c 'cuda/bin/nvcc -arch=sm_90 -c src/page.cu -o out/page.o'
