# An extension was compiled with a newer g++ than the libstdc++ that LD_LIBRARY_PATH gives.
. "$CASES/fakes.sh"
printf 'GLIBCXX_3.4.29{global:old;local:*;};\n' > o.map; printf 'GLIBCXX_3.4.29{global:old;local:*;};GLIBCXX_3.4.32{global:_ZSt21ios_base_library_initv;}GLIBCXX_3.4.29;\n' > n.map
so conda/lib/libstdc++.so.6 libstdc++.so.6 'int old(void){return 1;}' -Wl,--version-script=o.map
so sys/libstdc++.so.6 libstdc++.so.6 'int old(void){return 1;} int _ZSt21ios_base_library_initv(void){return 0;}' -Wl,--version-script=n.map
C=.cache/torch_extensions/py312_cu130/fused_adam; so $C/fused_adam.so fused_adam.so 'int _ZSt21ios_base_library_initv(void); int f(void){return _ZSt21ios_base_library_initv();}' -Lsys -l:libstdc++.so.6 -Wl,--enable-new-dtags -Wl,-rpath,$W/sys
cat > app.py <<'P'
import ctypes, os
ctypes.CDLL(".cache/torch_extensions/py312_cu130/fused_adam/fused_adam.so", mode=os.RTLD_NOW); print("ok")
P
LD_LIBRARY_PATH=$W/conda/lib $RUN python3 app.py
$RUN python3 app.py
