# D13: driver too old for the PTX (222)
# After NVIDIA/nvbandwidth#61. Expected untraced: expected: 222, 0, 0.
. "$CASES/fakes.sh"
so drv/libcuda.so.1 libcuda.so.1 '#include <stdio.h>
int cuDriverGetVersion(int*v){*v=13000;return 0;}
int cuModuleLoadData(const char*p){int a,b; if(sscanf(p,".version %d.%d",&a,&b)!=2) return 0; /* cubin */ return a*10+b>90?222:0;}'
cat > app.py <<'P'
import ctypes
l = ctypes.CDLL("libcuda.so.1"); v = ctypes.c_int(); l.cuDriverGetVersion(ctypes.byref(v))
for what, img in (("PTX from nvcc 13.2", b".version 9.2\n.target sm_80\n"), ("PTX from nvcc 13.0", b".version 9.0\n.target sm_90\n"), ("cubin sm_90", b"\x7fELF")):
    print(what, "driver", v.value, "->", l.cuModuleLoadData(img))
P
LD_LIBRARY_PATH=drv $RUN python3 app.py                   # 222, 0, 0
