# Facade over interop/storage.h: the methods of an undefined c10::Storage would read a null pointer.
#
# The reference-counted memory of one or more tensors: t.storage(). A default-constructed Storage has no memory: apart
# from use_count() and its conversion to bool, everything raises ValueError.
from libcpp cimport bool as cbool

from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "interop/storage.h" namespace "interop" nogil:
    cppclass Storage:
        Storage() noexcept
        size_t use_count() noexcept
        cbool operator bool() noexcept
        size_t nbytes() except +translate_exception
        const void* data() except +translate_exception
        void* mutable_data() except +translate_exception
        cbool resizable() except +translate_exception
        Device device() except +translate_exception
        cbool is_alias_of(const Storage& other) except +translate_exception
