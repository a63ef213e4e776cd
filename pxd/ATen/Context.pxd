# The features that torch was built with, and the seed of its generators.
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool

from interop.exceptions cimport translate_exception

cdef extern from "ATen/Context.h" namespace "at" nogil:
    # Seeds the generators of the CPU and of all GPUs, as torch.manual_seed() does.
    void manual_seed(uint64_t seed) except +translate_exception

    # Whether torch was built with the feature and, for devices, finds one.
    cbool hasCUDA() except +translate_exception
    cbool hasHIP() except +translate_exception
    cbool hasXPU() except +translate_exception
    cbool hasMPS() except +translate_exception
    cbool hasMTIA() except +translate_exception
    cbool hasXLA() except +translate_exception
    cbool hasHPU() except +translate_exception
    cbool hasMKL() except +translate_exception
    cbool hasMKLDNN() except +translate_exception
    cbool hasLAPACK() except +translate_exception
    cbool hasOpenMP() except +translate_exception
    cbool hasMAGMA() except +translate_exception
    size_t getNumGPUs() except +translate_exception
