# The memory behind one or more tensors, reference-counted. A default-constructed one has none, and most methods of C++
# would crash on it; what is declared is safe. Sizes and pointers come from the tensor: t.nbytes(), t.data_ptr().
from libcpp cimport bool as cbool

cdef extern from "c10/core/Storage.h" namespace "c10" nogil:
    cppclass Storage:
        Storage() noexcept
        size_t use_count() noexcept
        cbool operator bool() noexcept
