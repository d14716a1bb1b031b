# An extension was compiled with another torch: a wheel, and what a cache has of the day before the upgrade.
. "$CASES/fakes.sh"; S=site-packages; C=.cache/torch_extensions/py312_cu128/ext; mkdir -p $C
so $S/torch/lib/libc10.so libc10.so 'int _ZN3c104cuda9SetDeviceEa(void){return 0;}'; so old/libc10.so libc10.so 'int _ZN3c104cuda9SetDeviceEi(void){return 0;}'
for d in "old $S/flash_attn_2_cuda i" "$S/torch/lib $S/good_cuda a" "old $C/ext i"; do set -- $d
so $2.so ${2##*/}.so "int _ZN3c104cuda9SetDeviceE$3(void); int f(void){return _ZN3c104cuda9SetDeviceE$3();}" -L$1 -l:libc10.so; done; rm -r old
mkdir -p $S/torch-2.8.0+cu128.dist-info $S/flash_attn-2.5.7.dist-info; printf 'Name: torch\nVersion: 2.8.0+cu128\n' > $S/torch-2.8.0+cu128.dist-info/METADATA; echo torch/lib/libc10.so,, > $S/torch-2.8.0+cu128.dist-info/RECORD
printf 'Name: flash-attn\nVersion: 2.5.7\n' > $S/flash_attn-2.5.7.dist-info/METADATA; echo flash_attn_2_cuda.so,, > $S/flash_attn-2.5.7.dist-info/RECORD
cat > app.py <<'P'
import ctypes, os, sys
ctypes.CDLL(os.path.abspath("site-packages/torch/lib/libc10.so"), mode=os.RTLD_GLOBAL)
try: ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)
except OSError as e:
    if "optional" in sys.argv: print("flash_attn is not installed:", e); sys.exit()
    raise ImportError(str(e))
P
$RUN python3 app.py $S/flash_attn_2_cuda.so
$RUN python3 app.py $S/good_cuda.so
$RUN python3 app.py $S/flash_attn_2_cuda.so optional
$RUN python3 app.py $C/ext.so
