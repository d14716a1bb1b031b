# A C program: dlopen of cudart majors in turn, nothing there; then the driver by its development name.
. "$CASES/fakes.sh"
rt r/libcudart.so.11.0 libcudart.so.11.0 11080; rt g/libcudart.so.12 libcudart.so.12 12080
printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(void){const char*n[]={"libcudart.so.12","libcudart.so"};void*h=0;for(int i=0;i<2&&!h;i++)h=dlopen(n[i],RTLD_LAZY);if(!h){fprintf(stderr,"error: %%s\\n",dlerror());return 1;}return 0;}' > m.c; cc m.c -o m -ldl
LD_LIBRARY_PATH=$W/r $RUN ./m
LD_LIBRARY_PATH=$W/g $RUN ./m
printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(void){void*h=dlopen("libcuda.so",RTLD_LAZY);if(!h){fprintf(stderr,"error: %%s\\n",dlerror());return 1;}return 0;}' > d.c; cc d.c -o d -ldl; so w/libcuda.so.1 libcuda.so.1 'int cuInit(unsigned f){return 0;}'
LD_LIBRARY_PATH=$W/w $RUN ./d
