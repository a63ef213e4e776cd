# c10::ArrayRef, a view of borrowed memory. It must not outlive the object that it was made from.
#
# There is no constructor from a vector, because Cython would convert a list into a temporary vector and reuse that
# temporary for the next list. Pass a vector or a list directly wherever an IntArrayRef is expected.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from interop.exceptions cimport translate_exception

cdef extern from "c10/util/ArrayRef.h" namespace "c10" nogil:
    cppclass ArrayRef[T]:
        ArrayRef() noexcept
        ArrayRef(const T* data, size_t length) noexcept
        const T* data() noexcept
        size_t size() noexcept
        cbool empty() noexcept
        const T& operator[](size_t index) noexcept
        const T& at(size_t index) except +translate_exception
        cbool equals(ArrayRef[T] other) except +translate_exception  # of SymInts it may add a guard, or raise
        vector[T] vec() except +translate_exception

    # To Cython this is a subclass of vector, so that one declaration `const vector[int64_t]&` takes a Python list or
    # tuple, a vector and an IntArrayRef. In C++, each of these converts to the parameter's type IntArrayRef.
    cppclass IntArrayRef(vector[int64_t]):
        IntArrayRef() noexcept
        IntArrayRef(const int64_t* data, size_t length) noexcept
        const int64_t* data() noexcept
        size_t size() noexcept
        cbool empty() noexcept
        const int64_t& operator[](size_t index) noexcept
        const int64_t& at(size_t index) except +translate_exception
        cbool equals(IntArrayRef other) noexcept
        vector[int64_t] vec() except +translate_exception
