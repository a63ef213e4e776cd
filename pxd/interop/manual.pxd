# The functions that ATen/Functions.h defines by hand, because native_functions.yaml gives no binding for them.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from ATen.core.TensorBody cimport Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/manual.h" namespace "interop::manual" nogil:
    int64_t numel(const Tensor& tensor) except +translate_exception
    int64_t size(const Tensor& tensor, int64_t dim) except +translate_exception
    int64_t stride(const Tensor& tensor, int64_t dim) except +translate_exception
    cbool is_complex(const Tensor& tensor) except +translate_exception
    cbool is_floating_point(const Tensor& tensor) except +translate_exception
    cbool is_signed(const Tensor& tensor) except +translate_exception
    cbool is_inference(const Tensor& tensor) except +translate_exception
    cbool is_conj(const Tensor& tensor) except +translate_exception
    cbool is_neg(const Tensor& tensor) except +translate_exception
    cbool _is_zerotensor(const Tensor& tensor) except +translate_exception
    Tensor conj(const Tensor& tensor) except +translate_exception
