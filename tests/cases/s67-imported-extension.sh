# A real extension module, imported.
. "$CASES/fakes.sh"
rt b/libcudart.so.13 libcudart.so.13 13000; rt sp/nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12 12080; mkdir -p sp/vllm
INC=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])'); SUF=$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
printf '#include <Python.h>\nint cudaRuntimeGetVersion(int*); static struct PyModuleDef d={PyModuleDef_HEAD_INIT,"_C",0,-1,0}; PyMODINIT_FUNC PyInit__C(void){int v; cudaRuntimeGetVersion(&v); return PyModule_Create(&d);}\n' > c.c
cc -shared -fPIC -I$INC c.c -o sp/vllm/_C$SUF -Lb -l:libcudart.so.13; mv b keep; : > sp/vllm/__init__.py
echo 'import vllm._C; print("ok")' > app.py; export PYTHONPATH=$W/sp
LD_LIBRARY_PATH=$W/sp/nvidia/cuda_runtime/lib $RUN python3 app.py
LD_LIBRARY_PATH=$W/keep $RUN python3 app.py
