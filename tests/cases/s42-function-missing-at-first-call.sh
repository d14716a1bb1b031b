# A C++ program whose libcublas comes from LD_LIBRARY_PATH and is older than the wheel that it was linked with.
. "$CASES/fakes.sh"
S=$W/w/nvidia/cublas/lib
so $S/libcublasLt.so.12 libcublasLt.so.12 'int cublasLtGetVersion(void){return 120804;} int cublasLtHSHMatmulAlgoInit(void){return 0;}'
so $W/usr-local-cuda-12.1/lib64/libcublasLt.so.12 libcublasLt.so.12 'int cublasLtGetVersion(void){return 120103;}'
so $S/libcublas.so.12 libcublas.so.12 'int cublasLtHSHMatmulAlgoInit(void); int cublasCreate_v2(void){return cublasLtHSHMatmulAlgoInit();}' -L$S -l:libcublasLt.so.12 -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN'
echo 'int cublasCreate_v2(void); int main(void){return cublasCreate_v2();}' > m.c; cc m.c -o server -L$S -l:libcublas.so.12 -Wl,-z,now -Wl,--enable-new-dtags -Wl,-rpath,$S -Wl,-rpath-link,$S
LD_LIBRARY_PATH=$W/usr-local-cuda-12.1/lib64 $RUN ./server
$RUN ./server
