# c10::ArrayRef, borrowed memory: it must not outlive what it was made from.
#
# There is no constructor from a vector: Cython would make that of a list in a temporary, which it uses again for the
# next one. A vector or a list can be passed as it is wherever an IntArrayRef is wanted.
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
        cbool equals(ArrayRef[T] other) noexcept
        vector[T] vec() except +translate_exception

    # To Cython this is a kind of vector, so that one declaration `const vector[int64_t]&` takes a list or tuple of
    # Python, a vector and an IntArrayRef. To C++, where the parameter is an IntArrayRef, each of these converts.
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
