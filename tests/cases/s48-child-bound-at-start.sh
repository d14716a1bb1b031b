# A child with the terminal's own stderr, started by a shell; its libcublasLt lacks a function and all is bound at the start.
. "$CASES/fakes.sh"
S=$W/w/nvidia/cublas/lib
so $S/libcublasLt.so.12 libcublasLt.so.12 'int cublasLtGetVersion(void){return 120804;} int cublasLtHSHMatmulAlgoInit(void){return 0;}'
so $W/cuda-12.1/lib64/libcublasLt.so.12 libcublasLt.so.12 'int cublasLtGetVersion(void){return 120103;}'
so $S/libcublas.so.12 libcublas.so.12 'int cublasLtHSHMatmulAlgoInit(void); int cublasCreate_v2(void){return cublasLtHSHMatmulAlgoInit();}' -L$S -l:libcublasLt.so.12 -Wl,-z,now -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN'
echo 'int cublasCreate_v2(void); int main(void){return cublasCreate_v2();}' > m.c; cc m.c -o server -L$S -l:libcublas.so.12 -Wl,-z,now -Wl,--enable-new-dtags -Wl,-rpath,$S -Wl,-rpath-link,$S
LD_LIBRARY_PATH=$W/cuda-12.1/lib64 $RUN sh -c './server; exit $?'
$RUN sh -c './server; exit $?'
