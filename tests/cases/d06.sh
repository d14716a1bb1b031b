# D06: LD_LIBRARY_PATH beats the wheel's RUNPATH (nvJitLink)
# After jax-ml/jax#28929. Expected untraced: expected: CPU with an undefined symbol; then GPU.
. "$CASES/fakes.sh"
S=$W/site-packages/nvidia
so $S/nvjitlink/lib/libnvJitLink.so.12 libnvJitLink.so.12 'int nvJitLinkVersion(int*a,int*b){*a=12;*b=9;return 0;} int __nvJitLinkComplete_12_9(void){return 0;}'
so $W/cuda-12.1/lib64/libnvJitLink.so.12 libnvJitLink.so.12 'int nvJitLinkVersion(int*a,int*b){*a=12;*b=1;return 0;}'
so $S/cusparse/lib/libcusparse.so.12 libcusparse.so.12 'int __nvJitLinkComplete_12_9(void); int cusparseGetProperty(void){return __nvJitLinkComplete_12_9();}' \
   -L$S/nvjitlink/lib -l:libnvJitLink.so.12 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../../nvjitlink/lib'
cat > app.py <<'P'
import ctypes, os
try: ctypes.CDLL("site-packages/nvidia/cusparse/lib/libcusparse.so.12", mode=os.RTLD_NOW); print("GPU")
except OSError as e: print("cuSPARSE was not found -> CPU;", str(e).split(": ", 1)[1])
P
LD_LIBRARY_PATH=$W/cuda-12.1/lib64 $RUN python3 app.py    # bad: silent CPU fallback
$RUN python3 app.py                                       # good: RUNPATH reached
