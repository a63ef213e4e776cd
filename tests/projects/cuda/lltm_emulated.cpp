// The LLTM's CUDA kernels, compiled for the host.
#include "cell_cuda.cu"
