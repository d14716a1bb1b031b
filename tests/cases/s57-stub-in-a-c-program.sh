# A C program whose runtime meets the stub driver.
. "$CASES/fakes.sh"
so cuda/lib64/stubs/libcuda.so libcuda.so.1 'int cuInit(unsigned f){return 34;}'; ln -s libcuda.so cuda/lib64/stubs/libcuda.so.1
so drv/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;}'
so rt/libcudart.so.12 libcudart.so.12 '#include <dlfcn.h>
int cudaGetDeviceCount(int*n){void*h=dlopen("libcuda.so.1",RTLD_NOW);*n=0;if(!h) return 35;int r=((int(*)(unsigned))dlsym(h,"cuInit"))(0);*n=!r;return r;} int cudaRuntimeGetVersion(int*v){*v=12080;return 0;}' -ldl
printf '#include <stdio.h>\nint cudaGetDeviceCount(int*); int main(void){int n, r=cudaGetDeviceCount(&n); if(r){ printf("CUDA error %%d: CUDA driver is a stub library\\n", r); return 1;} return 0;}' > m.c; cc m.c -o deviceQuery -Lrt -l:libcudart.so.12 -Wl,-rpath,$W/rt
LD_LIBRARY_PATH=$W/cuda/lib64/stubs:$W/drv $RUN ./deviceQuery
LD_LIBRARY_PATH=$W/drv $RUN ./deviceQuery
