# D14: cuda-compat libcuda in the image shadows the host driver (803; sibling 804)
# After gpustack/gpustack#4678. Expected untraced: expected: 803 with compat first; 0; then 804 for the reverse case.
. "$CASES/fakes.sh"
for d in "compat 575.57.08 12090" "host 580.65.06 13000"; do set -- $d      # as installed: libcuda.so.<driver release> and the link libcuda.so.1
so $1/libcuda.so.$2 libcuda.so.1 "#include <stdio.h>
int cuInit(unsigned f){int k=0; FILE*p=fopen(\"kernel_module_version\",\"r\"); if(p) {if(fscanf(p,\"%d\",&k)!=1) k=0; fclose(p);} return k>${2%%.*}?803:k<${2%%.*}?804:0;}
int cuDriverGetVersion(int*v){*v=$3;return 0;}"; ln -s libcuda.so.$2 $1/libcuda.so.1; done
echo 580 > kernel_module_version                      # stands for the loaded kernel module, which a test cannot change
cat > app.py <<'P'
import ctypes
l = ctypes.CDLL("libcuda.so.1"); v = ctypes.c_int(); l.cuDriverGetVersion(ctypes.byref(v))
print("cuInit", l.cuInit(0), "libcuda says", v.value, [x.split()[-1] for x in open("/proc/self/maps") if "libcuda" in x][0])
P
LD_LIBRARY_PATH=compat:host $RUN python3 app.py           # bad: 803 (image's compat copy first)
LD_LIBRARY_PATH=host $RUN python3 app.py                  # good
echo 535 > kernel_module_version; LD_LIBRARY_PATH=compat:host $RUN python3 app.py   # sibling kind: 804, compat newer than an old kernel module
