# A warm cache still runs cuobjdump, which this toolkit does not have.
. "$CASES/fakes.sh"
tk cuda-13.0 13.0 "sm_90a"
cat > app.py <<'P'
import os, subprocess
subprocess.run([os.environ["CUDA_HOME"] + "/bin/cuobjdump", "-symbols", "k.cubin"], check=True); print("ok")
P
CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
printf '#!/bin/sh\necho symbols\n' > cuda-13.0/bin/cuobjdump; chmod +x cuda-13.0/bin/cuobjdump; CUDA_HOME=$W/cuda-13.0 $RUN python3 app.py
