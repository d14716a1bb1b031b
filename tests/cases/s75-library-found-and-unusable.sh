# A library is found and cannot be taken: an empty file that an image build left behind, and one for another machine.
. "$CASES/fakes.sh"
mkdir img; : > img/libcuda.so.450.51.06; ln -s libcuda.so.450.51.06 img/libcuda.so.1
so host/libcuda.so.580.65.06 libcuda.so.1 'int cuInit(unsigned f){return 0;} int cuDriverGetVersion(int*v){*v=13000;return 0;}'; ln -s libcuda.so.580.65.06 host/libcuda.so.1
rt ok/libcudart.so.13 libcudart.so.13 13000; mkdir arm; cp ok/libcudart.so.13 arm/
printf '\003\000' | dd of=arm/libcudart.so.13 bs=1 seek=18 conv=notrunc 2>/dev/null
cat > app.py <<'P'
import ctypes, sys
try: ctypes.CDLL(sys.argv[1])
except OSError as e: raise ImportError(str(e))
P
LD_LIBRARY_PATH=$W/img:$W/host $RUN python3 app.py libcuda.so.1
LD_LIBRARY_PATH=$W/host:$W/img $RUN python3 app.py libcuda.so.1
$RUN python3 app.py $W/arm/libcudart.so.13
LD_LIBRARY_PATH=$W/arm:$W/ok $RUN python3 app.py libcudart.so.13
