# A library asks for another by a bare name that no search leads to, and prints its complaint itself. Optional plugins: silent.
. "$CASES/fakes.sh"; S=$W/site-packages/nvidia
so $S/cuda_nvrtc/lib/libnvrtc.so.12 libnvrtc.so.12 'int nvrtcVersion(int*a,int*b){*a=12;*b=4;return 0;}'
so $S/cudnn/lib/libcudnn_cnn_infer.so.8 libcudnn_cnn_infer.so.8 '#include <dlfcn.h>
int run(void){return dlopen("libnvrtc.so",RTLD_NOW)?0:1;}' -ldl
so $S/nvshmem/lib/nvshmem_bootstrap_uid.so.3 nvshmem_bootstrap_uid.so.3 'int b(void){return 0;}'
so $S/nvshmem/lib/libnvshmem_host.so.3 libnvshmem_host.so.3 '#include <dlfcn.h>
int run(void){return dlopen("nvshmem_bootstrap_uid.so.3",RTLD_NOW)?0:7;}' -ldl
so $S/nccl/lib/libnccl.so.2 libnccl.so.2 '#include <dlfcn.h>
int run(void){const char*n[]={"libnccl-net.so","libnccl-tuner.so","libibverbs.so.1","libgdrapi.so.2","libcufile.so.0"};for(int i=0;i<5;i++)dlopen(n[i],RTLD_NOW);return 0;} int ncclGetVersion(int*v){*v=22703;return 0;}' -ldl
cat > app.py <<'P'
import ctypes, sys
ctypes.CDLL("site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
if ctypes.CDLL(sys.argv[1]).run(): raise RuntimeError("initialization failed")
if "other" in sys.argv: raise ValueError("no such model")
P
cat > monitor.py <<'P'
import ctypes, sys
try: ctypes.CDLL("libnvidia-ml.so.1")
except OSError:
    if "optional" not in sys.argv: raise RuntimeError("NVML Shared Library Not Found")
P
$RUN python3 app.py $S/cudnn/lib/libcudnn_cnn_infer.so.8
mkdir links; ln -s $S/cuda_nvrtc/lib/libnvrtc.so.12 links/libnvrtc.so; LD_LIBRARY_PATH=$W/links $RUN python3 app.py $S/cudnn/lib/libcudnn_cnn_infer.so.8
$RUN python3 app.py $S/nvshmem/lib/libnvshmem_host.so.3
LD_LIBRARY_PATH=$S/nvshmem/lib $RUN python3 app.py $S/nvshmem/lib/libnvshmem_host.so.3
$RUN python3 app.py $S/nccl/lib/libnccl.so.2
$RUN python3 app.py $S/nccl/lib/libnccl.so.2 other
$RUN python3 monitor.py
$RUN python3 monitor.py optional
