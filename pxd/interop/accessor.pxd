# Indexed access to the elements of a CPU tensor: a[i][j], for reading and writing, without the GIL.
#
#     cdef const_accessor2[float] a = const_accessor2[float](x.cdata)
#     cdef accessor2[float] b = accessor2[float](y.cdata, b"y")
#     with nogil:
#         for i in range(a.size(0)):
#             for j in range(a.size(1)):
#                 b[i][j] = 2 * a[i][j]
#
# The constructor raises, and names the argument, unless the tensor is an ordinary CPU tensor with this number of
# dimensions and this element type. A writable accessor also rejects a tensor that requires grad while graphs are
# recorded, and counts as one in-place operation.
#
# An accessor shares the tensor's memory and keeps it alive. Only resizing the tensor's storage, or moving it to shared
# memory, invalidates the accessor. A row a[i] borrows the memory from the accessor. Indices count from 0 and are not
# checked, unless the module is compiled with the macro INTEROP_BOUNDSCHECK; then a wrong index raises IndexError.
from libc.stdint cimport int64_t

from ATen.core.TensorBody cimport Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/accessor.h" namespace "interop" nogil:
    # The remaining dimensions of an accessor after some indices. A row borrows the accessor's memory.
    cppclass row1 "interop::Row1"[T]:
        T& operator[](int64_t index) except +translate_exception

    cppclass row2 "interop::Row2"[T]:
        row1[T] operator[](int64_t index) except +translate_exception

    cppclass row3 "interop::Row3"[T]:
        row2[T] operator[](int64_t index) except +translate_exception

    cppclass const_row1 "interop::ConstRow1"[T]:
        T operator[](int64_t index) except +translate_exception

    cppclass const_row2 "interop::ConstRow2"[T]:
        const_row1[T] operator[](int64_t index) except +translate_exception

    cppclass const_row3 "interop::ConstRow3"[T]:
        const_row2[T] operator[](int64_t index) except +translate_exception

    cppclass accessor1 "interop::Accessor1"[T]:
        accessor1() noexcept  # empty
        accessor1(const Tensor& tensor) except +translate_exception
        accessor1(const Tensor& tensor, const char* argument) except +translate_exception
        T& operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        T* data() noexcept

    cppclass accessor2 "interop::Accessor2"[T]:
        accessor2() noexcept  # empty
        accessor2(const Tensor& tensor) except +translate_exception
        accessor2(const Tensor& tensor, const char* argument) except +translate_exception
        row1[T] operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        T* data() noexcept

    cppclass accessor3 "interop::Accessor3"[T]:
        accessor3() noexcept  # empty
        accessor3(const Tensor& tensor) except +translate_exception
        accessor3(const Tensor& tensor, const char* argument) except +translate_exception
        row2[T] operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        T* data() noexcept

    cppclass accessor4 "interop::Accessor4"[T]:
        accessor4() noexcept  # empty
        accessor4(const Tensor& tensor) except +translate_exception
        accessor4(const Tensor& tensor, const char* argument) except +translate_exception
        row3[T] operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        T* data() noexcept

    cppclass const_accessor1 "interop::ConstAccessor1"[T]:
        const_accessor1() noexcept  # empty
        const_accessor1(const Tensor& tensor) except +translate_exception
        const_accessor1(const Tensor& tensor, const char* argument) except +translate_exception
        T operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        const T* data() noexcept

    cppclass const_accessor2 "interop::ConstAccessor2"[T]:
        const_accessor2() noexcept  # empty
        const_accessor2(const Tensor& tensor) except +translate_exception
        const_accessor2(const Tensor& tensor, const char* argument) except +translate_exception
        const_row1[T] operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        const T* data() noexcept

    cppclass const_accessor3 "interop::ConstAccessor3"[T]:
        const_accessor3() noexcept  # empty
        const_accessor3(const Tensor& tensor) except +translate_exception
        const_accessor3(const Tensor& tensor, const char* argument) except +translate_exception
        const_row2[T] operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        const T* data() noexcept

    cppclass const_accessor4 "interop::ConstAccessor4"[T]:
        const_accessor4() noexcept  # empty
        const_accessor4(const Tensor& tensor) except +translate_exception
        const_accessor4(const Tensor& tensor, const char* argument) except +translate_exception
        const_row3[T] operator[](int64_t index) except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        const T* data() noexcept
