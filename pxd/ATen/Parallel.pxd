# How many threads ATen's operators use.
from libcpp cimport bool as cbool

from interop.exceptions cimport translate_exception

cdef extern from "ATen/Parallel.h" namespace "at" nogil:
    int get_num_threads() except +translate_exception
    void set_num_threads(int count) except +translate_exception
    int get_num_interop_threads() except +translate_exception
    int get_thread_num() except +translate_exception
    cbool in_parallel_region() except +translate_exception
