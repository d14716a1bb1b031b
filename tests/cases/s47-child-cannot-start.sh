# The same as a child of a Python launcher.
. "$CASES/fakes.sh"
rt b/libcudart.so.13 libcudart.so.13 13000; rt opt/cuda-12.9/lib64/libcudart.so.12 libcudart.so.12 12090
echo 'int cudaRuntimeGetVersion(int*); int main(void){int v; return cudaRuntimeGetVersion(&v);}' > m.c; cc m.c -o llama-server -Lb -l:libcudart.so.13; mkdir 13; mv b/libcudart.so.13 13
printf 'import subprocess, sys\nr = subprocess.run(["./llama-server"], capture_output=True, text=True)\nif r.returncode: raise RuntimeError("backend failed: " + r.stderr)\n' > app.py
LD_LIBRARY_PATH=$W/opt/cuda-12.9/lib64 $RUN python3 app.py
LD_LIBRARY_PATH=$W/13 $RUN python3 app.py
