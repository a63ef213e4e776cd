# CUDA kernels from Cython: `from interop.cuda cimport Launch`.
from interop.cuda.check cimport check_data, check_device, check_floating, check_same_device
from interop.cuda.elementwise cimport Elementwise, elementwise_into, elementwise_with_integers
from interop.cuda.launch cimport Launch
from interop.cuda.nvrtc_kernel cimport Dim3, Kernel
