# A module was linked with a RUNPATH that leads to the stubs.
. "$CASES/fakes.sh"
so cuda/lib64/stubs/libcuda.so libcuda.so.1 'int cuInit(unsigned f){return 34;}'; ln -s libcuda.so cuda/lib64/stubs/libcuda.so.1
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;}'
so pkg/bad.so bad.so 'int cuInit(unsigned); int f(void){return cuInit(0);}' -Lcuda/lib64/stubs -lcuda -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../cuda/lib64/stubs'
so pkg/good.so good.so 'int cuInit(unsigned); int f(void){return cuInit(0);}' -Ldrv -l:libcuda.so.1 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/../drv'
cat > app.py <<'P'
import ctypes, sys
ctypes.CDLL(sys.argv[1]); rc = ctypes.CDLL("libcuda.so.1").cuInit(0)
sys.exit(f"RuntimeError: cuInit gave {rc}" if rc else 0)
P
$RUN python3 app.py pkg/bad.so
$RUN python3 app.py pkg/good.so
