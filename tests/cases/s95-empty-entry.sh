# An empty entry of LD_LIBRARY_PATH is the current directory, where an old library lies.
. "$CASES/fakes.sh"; S=$W/sp/nvidia
so $S/nvjitlink/lib/libnvJitLink.so.12 libnvJitLink.so.12 'int nvJitLinkVersion(int*a,int*b){*a=12;*b=9;return 0;} int __nvJitLinkComplete_12_9(void){return 0;}'
so $W/libnvJitLink.so.12 libnvJitLink.so.12 'int nvJitLinkVersion(int*a,int*b){*a=12;*b=1;return 0;}'
so $S/cusparse/lib/libcusparse.so.12 libcusparse.so.12 'int __nvJitLinkComplete_12_9(void); int f(void){return __nvJitLinkComplete_12_9();}' -L$S/nvjitlink/lib -l:libnvJitLink.so.12 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../../nvjitlink/lib'
cat > app.py <<'P'
import ctypes, os
try: ctypes.CDLL("sp/nvidia/cusparse/lib/libcusparse.so.12", mode=os.RTLD_NOW)
except OSError as e: raise ImportError(str(e))
print("ok")
P
LD_LIBRARY_PATH=:/opt/none $RUN python3 app.py
LD_LIBRARY_PATH=/opt/none $RUN python3 app.py
