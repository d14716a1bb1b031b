# An extension is built for the NVRTC of another major.
. "$CASES/fakes.sh"
S=site-packages; so b/libnvrtc.so.12 libnvrtc.so.12 'int nvrtcVersion(int*a,int*b){*a=12;*b=9;return 0;}'; so $S/nvidia/cu13/lib/libnvrtc.so.13 libnvrtc.so.13 'int nvrtcVersion(int*a,int*b){*a=13;*b=0;return 0;}'
so $S/sgl_kernel/sm90/common_ops.abi3.so common_ops.abi3.so 'int nvrtcVersion(int*,int*); int f(int*a){return nvrtcVersion(a,a);}' -Lb -l:libnvrtc.so.12; mv b b2
cat > app.py <<'P'
import ctypes, os, sys
ctypes.CDLL("site-packages/nvidia/cu13/lib/libnvrtc.so.13")
errs = []
for p in ("sm90/common_ops.abi3.so", "common_ops.abi3.so"):
    try: ctypes.CDLL("site-packages/sgl_kernel/" + p); break
    except OSError as e: errs.append(str(e))
else:
    raise ImportError("\n[sgl_kernel] CRITICAL: Could not load any common_ops library!\n\nAttempted locations:\n1. sm90\n\nError details from previous import attempts:\n- " + "\n- ".join(errs))
P
$RUN python3 app.py
LD_LIBRARY_PATH=$W/b2 $RUN python3 app.py
