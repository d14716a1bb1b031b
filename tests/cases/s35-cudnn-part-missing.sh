# Sub-libraries of cuDNN are not beside the one that asks for them: "Unable to load any of", then abort.
. "$CASES/fakes.sh"
so w/nvidia/cudnn/lib/libcudnn_ops.so.9 libcudnn_ops.so.9 'int x(void){return 0;}'
cat > ct.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void){ const char*n[]={"libcudnn_ops.so.9.1.0","libcudnn_ops.so.9.1","libcudnn_ops.so.9","libcudnn_ops.so"}; void*h=0;
for(int i=0;i<4&&!h;i++) h=dlopen(n[i],RTLD_NOW);
if(!h){ fprintf(stderr,"Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}\nInvalid handle. Cannot load symbol cudnnCreateTensorDescriptor\n"); abort(); }
puts("transcribed"); return 0; }
C
cc -o whisper ct.c -ldl; ulimit -c 0
$RUN ./whisper
LD_LIBRARY_PATH=$W/w/nvidia/cudnn/lib $RUN ./whisper
