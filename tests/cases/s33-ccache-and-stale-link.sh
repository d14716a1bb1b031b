# nvcc is run through ccache; a stale symlink on PATH leads to the old toolkit.
. "$CASES/fakes.sh"
tk opt/cuda-12.6 12.6 "sm_80 sm_90"; tk opt/cuda-12.9 12.9 "sm_80 sm_90 sm_120a"; mkdir -p bin; ln -s ../opt/cuda-12.6/bin/nvcc bin/nvcc
printf '#!/bin/sh\nexec "$@"\n' > bin/ccache; chmod +x bin/ccache
for d in opt/cuda-12.6 opt/cuda-12.9; do sed -i 's|"\${0%/\*}/ptxas"|"$(dirname $(readlink -f $0))/ptxas"|; s|Value .\$arch. is not defined (fake \$V)|Unsupported gpu architecture '"'"'$arch'"'"'|' $d/bin/nvcc; done
cat > build.py <<'P'
import subprocess, sys
r = subprocess.run("ccache nvcc -arch=sm_120a -out=k.o k.cu 2>&1", shell=True, capture_output=True, text=True)
print(r.stdout)
sys.exit("ninja: build stopped: subcommand failed." if r.returncode else 0)
P
PATH=$W/bin:$PATH $RUN python3 build.py
PATH=$W/opt/cuda-12.9/bin:$W/bin:$PATH $RUN python3 build.py
