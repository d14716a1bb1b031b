# nvcc refuses a host compiler that is newer than it knows.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_90"
sed -i '3i case "$*" in *--version*) ;; *) v=$("${NVCC_CCBIN:-gcc}" -dumpversion); [ "$v" -le 13 ] || { echo "cuda-12.4/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 13 are not supported!" >\&2; exit 1; };; esac' cuda-12.4/bin/nvcc
mkdir new old; printf '#!/bin/sh\necho 14\n' > new/g++-14; printf '#!/bin/sh\necho 12\n' > old/g++-12; chmod +x new/* old/*
cat > app.py <<'P'
import subprocess, sys
sys.exit(subprocess.run(["cuda-12.4/bin/nvcc", "-arch=sm_90", "-out=k.o", "k.cu"]).returncode)
P
NVCC_CCBIN=$W/new/g++-14 $RUN python3 app.py
NVCC_CCBIN=$W/old/g++-12 $RUN python3 app.py
