# The memory behind one or more tensors, reference-counted.
from libcpp cimport bool as cbool

from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "c10/core/Storage.h" namespace "c10" nogil:
    cppclass Storage:
        Storage() noexcept
        size_t nbytes() except +translate_exception
        cbool resizable() except +translate_exception
        const void* data() except +translate_exception
        void* mutable_data() except +translate_exception
        Device device() except +translate_exception
        size_t use_count() noexcept
        cbool is_alias_of(const Storage& other) except +translate_exception
