# One of four compilers is killed, as when memory runs out.
. "$CASES/fakes.sh"
tk cuda 13.0 "sm_90a"
printf '#!/bin/sh\n[ -n "$BIG" ] && kill -9 $$\nexit 0\n' > cuda/bin/cicc; chmod +x cuda/bin/cicc
sed -i 's|^\[ \$me = nvcc \].*|[ $me = nvcc ] \&\& { "${0%/*}/cicc" k.cu; r=$?; [ $r = 0 ] \|\| { [ $r -gt 128 ] \&\& echo "nvcc error   : 'cicc' died due to signal 9 (Kill signal)" >\&2; exit 255; }; }|' cuda/bin/nvcc
cat > app.py <<'P'
import os, subprocess
ps = [subprocess.Popen(["cuda/bin/nvcc", "-arch=sm_90a", f"-out=k{i}.o", f"k{i}.cu"]) for i in range(4)]
if any(p.wait() for p in ps): raise RuntimeError("Error compiling objects for extension: ninja: build stopped: subcommand failed.")
print("ok")
P
BIG=1 $RUN python3 app.py
$RUN python3 app.py
