# XLA does not find libdevice: the data directory is another toolkit's, without nvvm.
. "$CASES/fakes.sh"
tk cuda-12.4 12.4 "sm_90"; tk cuda-12.8 12.8 "sm_90"; mkdir -p cuda-12.8/nvvm/libdevice; : > cuda-12.8/nvvm/libdevice/libdevice.10.bc
cat > app.py <<'P'
import os, sys
root = os.environ["XLA_FLAGS"].split("=")[1]
try: open(root + "/nvvm/libdevice/libdevice.10.bc").close()
except OSError:
    print("W0000 00:00 gpu_backend_lib.cc:591] Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice. This may result in compilation or runtime failures.\n  ./cuda_sdk_lib\n  " + root, file=sys.stderr)
    raise RuntimeError("INTERNAL: libdevice not found at ./libdevice.10.bc")
print("ok")
P
XLA_FLAGS=--xla_gpu_cuda_data_dir=$W/cuda-12.4 $RUN python3 app.py
XLA_FLAGS=--xla_gpu_cuda_data_dir=$W/cuda-12.8 $RUN python3 app.py
