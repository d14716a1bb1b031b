# cuDNN of the system shadows the wheel's: older than what the framework was compiled with.
. "$CASES/fakes.sh"
S=$W/site-packages/nvidia/cudnn/lib
so $S/libcudnn.so.9 libcudnn.so.9 'unsigned long cudnnGetVersion(void){return 91301;}'
so $W/opt/cudnn/lib/libcudnn.so.9 libcudnn.so.9 'unsigned long cudnnGetVersion(void){return 91001;}'
so $W/site-packages/jax_cuda12_plugin/xla_cuda_plugin.so xla_cuda_plugin.so 'unsigned long cudnnGetVersion(void); unsigned long ver(void){return cudnnGetVersion();}' -L$S -l:libcudnn.so.9 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../nvidia/cudnn/lib'
cat > app.py <<'P'
import ctypes, sys
p = ctypes.CDLL("site-packages/jax_cuda12_plugin/xla_cuda_plugin.so"); p.ver.restype = ctypes.c_ulong; v = p.ver()
if v < 91301:
    print(f"E1027 15:11:27.184481 3266602 cuda_dnn.cc:456] Loaded runtime CuDNN library: {v//10000}.{v//100%100}.{v%100} but source was compiled with: 9.13.1.  CuDNN library needs to have matching major version and equal or higher minor version.", file=sys.stderr)
    raise RuntimeError("FAILED_PRECONDITION: DNN library initialization failed.")
print("ok")
P
LD_LIBRARY_PATH=$W/opt/cudnn/lib $RUN python3 app.py
$RUN python3 app.py
