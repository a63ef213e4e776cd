# Lists as arguments, for code without the GIL: at.zeros(dims(2, 3)), at.cat(tensors(a, b), 1). A tuple of C values
# also works, at.zeros((n, m)), but these lists can be variables.
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from ATen.core.TensorBody cimport CTensor, Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/lists.h" namespace "interop" nogil:
    # Up to 8 integers, held by value.
    cppclass Dims(vector[int64_t]):
        Dims() noexcept
        size_t size() noexcept
        const int64_t* data() noexcept
        const int64_t& operator[](size_t index) noexcept

    Dims dims() noexcept
    Dims dims(int64_t a) noexcept
    Dims dims(int64_t a, int64_t b) noexcept
    Dims dims(int64_t a, int64_t b, int64_t c) noexcept
    Dims dims(int64_t a, int64_t b, int64_t c, int64_t d) noexcept
    Dims dims(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) noexcept
    Dims dims(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f) noexcept
    Dims dims(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g) noexcept
    Dims dims(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g, int64_t h) noexcept

    # A list that owns a reference to each tensor.
    vector[Tensor] tensors() except +translate_exception
    vector[Tensor] tensors(CTensor& a) except +translate_exception
    vector[Tensor] tensors(CTensor& a, CTensor& b) except +translate_exception
    vector[Tensor] tensors(CTensor& a, CTensor& b, CTensor& c) except +translate_exception
    vector[Tensor] tensors(CTensor& a, CTensor& b, CTensor& c, CTensor& d) except +translate_exception
    vector[Tensor] tensors(CTensor& a, CTensor& b, CTensor& c, CTensor& d, CTensor& e) except +translate_exception
    vector[Tensor] tensors(
        CTensor& a, CTensor& b, CTensor& c, CTensor& d, CTensor& e, CTensor& f
    ) except +translate_exception
    vector[Tensor] tensors(
        CTensor& a, CTensor& b, CTensor& c, CTensor& d, CTensor& e, CTensor& f, CTensor& g
    ) except +translate_exception
    vector[Tensor] tensors(
        CTensor& a, CTensor& b, CTensor& c, CTensor& d, CTensor& e, CTensor& f, CTensor& g, CTensor& h
    ) except +translate_exception
