# D10: libcudart.so.NN cannot open; wheel variant differs from torch's
# After vllm-project/vllm#44335. Expected untraced: expected: torch part ok, then cannot open; readelf shows NEEDED .13.
. "$CASES/fakes.sh"
rt nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12 12090; rt build13/libcudart.so.13 libcudart.so.13 13000
so pkg/_C.abi3.so _C.abi3.so 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' -Lbuild13 -l:libcudart.so.13 -Wl,-rpath,'$ORIGIN/../nvidia/cuda_runtime/lib'
rm -r build13; mkdir -p torch-2.11.0+cu129.dist-info serverpkg-0.22.0.dist-info    # the second has no +cu tag
cat > app.py <<'P'
import ctypes
ctypes.CDLL("nvidia/cuda_runtime/lib/libcudart.so.12"); print("torch part ok (12)")
ctypes.CDLL("pkg/_C.abi3.so")
P
$RUN python3 app.py 2>&1 | tail -1                        # bad: libcudart.so.13: cannot open shared object file
readelf -d pkg/_C.abi3.so | grep -E 'NEEDED|RUNPATH'
