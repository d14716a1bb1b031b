# A library is skipped with a warning, and the program goes on without a GPU.
. "$CASES/fakes.sh"
so g/libcudnn.so.8 libcudnn.so.8 'int x(void){return 0;}'
cat > tf.py <<'P'
import ctypes, sys
for n in ("libcudnn.so.8",):
    try: ctypes.CDLL(n)
    except OSError as e:
        print(f"2023-01-01 00:00:00.1: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library '{n}'; dlerror: {e}; LD_LIBRARY_PATH: /usr/local/cuda/lib64", file=sys.stderr)
        print("W tensorflow/core/common_runtime/gpu/gpu_device.cc:1934] Cannot dlopen some GPU libraries. Skipping registering GPU devices...", file=sys.stderr)
print("done on CPU or GPU")
P
$RUN python3 tf.py
LD_LIBRARY_PATH=$W/g $RUN python3 tf.py
