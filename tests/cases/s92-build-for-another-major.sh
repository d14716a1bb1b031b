# An extension for CUDA 13 beside a torch for 12.9: the command that installs its other build.
. "$CASES/fakes.sh"; S=site-packages
rt $S/nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12 12090; rt build13/libcudart.so.13 libcudart.so.13 13000
so $S/vllm/_C.abi3.so _C.abi3.so 'int cudaRuntimeGetVersion(int*); int f(int*v){return cudaRuntimeGetVersion(v);}' -Lbuild13 -l:libcudart.so.13 -Wl,-rpath,'$ORIGIN/../nvidia/cuda_runtime/lib'
rm -r build13; for d in "torch 2.11.0+cu129 torch/version.py" "vllm 0.22.0 vllm/_C.abi3.so" ; do set -- $d; mkdir -p $S/$1-$2.dist-info; printf "Name: $1\nVersion: $2\n" > $S/$1-$2.dist-info/METADATA; echo $3,, > $S/$1-$2.dist-info/RECORD; done
cat > app.py <<'P'
import ctypes
ctypes.CDLL("site-packages/nvidia/cuda_runtime/lib/libcudart.so.12"); print("torch part ok (12)")
ctypes.CDLL("site-packages/vllm/_C.abi3.so")
P
$RUN python3 app.py
