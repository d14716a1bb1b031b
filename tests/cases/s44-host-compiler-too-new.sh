# g++ of the distribution is newer than nvcc accepts; CUDAHOSTCXX would replace it.
. "$CASES/fakes.sh"
tk cuda-12.2 12.2 "sm_90"; mkdir -p b12 b14
printf '#!/bin/sh\ncase $1 in -dumpfullversion|-dumpversion) echo 14.2.0;; --version) echo "g++ (Debian 14.2.0-19) 14.2.0";; *) echo "error: #error -- unsupported GNU version! gcc versions later than 12 are not supported! The nvcc flag '"'-allow-unsupported-compiler'"' can be used to override this version check" >&2; exit 1;; esac\n' > b14/g++
printf '#!/bin/sh\nexit 0\n' > b12/g++; chmod +x b12/g++ b14/g++
sed -i 's|^\[ \$me = nvcc \].*|[ $me = nvcc ] \&\& { cc=g++; for a in "$@"; do case $a in -ccbin=*) cc=${a#*=};; esac; done; $cc -E k.cu \|\| exit; }|' cuda-12.2/bin/nvcc
cat > app.py <<'P'
import os, subprocess, sys
c = ["-ccbin=" + os.environ["CXX"]] if "CXX" in os.environ else []
p = subprocess.Popen([os.environ["CUDA_HOME"] + "/bin/nvcc", *c, "-arch=sm_90", "-out=k.o", "k.cu"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
out = p.communicate()[0]
if p.returncode: raise RuntimeError("Error compiling objects for extension\n" + out)
P
export CUDA_HOME=$W/cuda-12.2
PATH=$W/b14:$PATH $RUN python3 app.py
CXX=$W/b12/g++ PATH=$W/b14:$PATH $RUN python3 app.py
