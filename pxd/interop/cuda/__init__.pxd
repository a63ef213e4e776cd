# CUDA kernels from Cython: `from interop.cuda cimport Launch`.
from interop.cuda.check cimport check_data, check_device, check_floating, check_same_device
from interop.cuda.launch cimport Launch
