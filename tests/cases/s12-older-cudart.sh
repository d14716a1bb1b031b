# Built against a newer runtime than the one that LD_LIBRARY_PATH gives: a symbol is missing.
. "$CASES/fakes.sh"
rt old/libcudart.so.12 libcudart.so.12 12010; so new/libcudart.so.12 libcudart.so.12 'int cudaRuntimeGetVersion(int*v){*v=12090;return 0;} int cudaGetDriverEntryPointByVersion(void){return 0;}'
so pkg/_C.so _C.so 'int cudaGetDriverEntryPointByVersion(void); int f(void){return cudaGetDriverEntryPointByVersion();}' -Lnew -l:libcudart.so.12 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../new'
cat > app.py <<'P'
import ctypes, os
ctypes.CDLL("pkg/_C.so", mode=os.RTLD_NOW); print("loaded")
P
LD_LIBRARY_PATH=$W/old $RUN python3 app.py
$RUN python3 app.py
