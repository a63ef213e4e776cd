# CUDA kernels that run on the host, with tensors of the CPU: what they compute, tested without a GPU.
cimport ATen as at
cimport torch
from interop.exceptions cimport translate_exception
from libc.stdint cimport int8_t, int64_t
from libcpp cimport bool as cbool

cdef extern from "emulated_kernels.h" nogil:
    at.Tensor emulated_swish(const at.Tensor& x, double beta, cbool wide) except +translate_exception
    at.Tensor emulated_hypotenuse(const at.Tensor& x, const at.Tensor& y, cbool wide) except +translate_exception
    at.Tensor emulated_hypotenuse_into(
        const at.Tensor& out, const at.Tensor& x, const at.Tensor& y) except +translate_exception
    at.Tensor emulated_multiply_add(
        const at.Tensor& x, const at.Tensor& y, const at.Tensor& z, cbool wide) except +translate_exception
    int emulated_swish_of(const at.Tensor& x, int64_t inputs) except +translate_exception
    int64_t _quotient "quotient"(int64_t dividend, int64_t divisor) noexcept

cdef extern from "cell_cuda.h" nogil:
    cppclass Rows:
        Rows() noexcept
        const void* data
        int64_t row_stride
        int64_t column_stride

    int lltm_join(
        int8_t dtype, int64_t batch, int64_t state, int64_t features, Rows h, Rows x, void* joined, void* stream,
    ) noexcept
    int lltm_forward(
        int8_t dtype, int64_t batch, int64_t state, void* gates, Rows c, void* new_h, void* new_c, void* stream,
    ) noexcept
    int lltm_backward(
        int8_t dtype, int64_t batch, int64_t state, Rows grad_h, Rows grad_c, Rows gates, Rows new_c, void* d_gates,
        void* d_c, void* stream,
    ) noexcept
    int lltm_sum(
        int8_t dtype, int64_t rows, int64_t columns, const void* matrix, void* sums, void* stream,
    ) noexcept


def swish(torch.Tensor x not None, double beta, cbool wide=False):
    return torch.wrap(emulated_swish(x.cdata, beta, wide))


def swish_of(torch.Tensor x not None, int64_t inputs):
    return emulated_swish_of(x.cdata, inputs)


def hypotenuse(torch.Tensor x not None, torch.Tensor y not None, cbool wide=False):
    return torch.wrap(emulated_hypotenuse(x.cdata, y.cdata, wide))


def hypotenuse_into(torch.Tensor out not None, torch.Tensor x not None, torch.Tensor y not None):
    return torch.wrap(emulated_hypotenuse_into(out.cdata, x.cdata, y.cdata))


def multiply_add(torch.Tensor x not None, torch.Tensor y not None, torch.Tensor z not None, cbool wide=False):
    return torch.wrap(emulated_multiply_add(x.cdata, y.cdata, z.cdata, wide))


def quotient(int64_t dividend, int64_t divisor):
    return _quotient(dividend, divisor)


cdef Rows rows(torch.Tensor tensor):
    cdef Rows result
    result.data = tensor.cdata.const_data_ptr()
    result.row_stride = tensor.cdata.stride(0)
    result.column_stride = tensor.cdata.stride(1)
    return result


cdef int8_t dtype_of(torch.Tensor tensor):
    return <int8_t><int>tensor.cdata.scalar_type()


def join(torch.Tensor h not None, torch.Tensor x not None, torch.Tensor joined not None):
    return lltm_join(
        dtype_of(h), h.cdata.size(0), h.cdata.size(1), x.cdata.size(1), rows(h), rows(x),
        joined.cdata.mutable_data_ptr(), NULL)


def forward(
    torch.Tensor gates not None, torch.Tensor c not None, torch.Tensor new_h not None, torch.Tensor new_c not None
):
    return lltm_forward(
        dtype_of(c), c.cdata.size(0), c.cdata.size(1), gates.cdata.mutable_data_ptr(), rows(c),
        new_h.cdata.mutable_data_ptr(), new_c.cdata.mutable_data_ptr(), NULL)


def backward(
    torch.Tensor grad_h not None,
    torch.Tensor grad_c not None,
    torch.Tensor gates not None,
    torch.Tensor new_c not None,
    torch.Tensor d_gates not None,
    torch.Tensor d_c not None,
):
    return lltm_backward(
        dtype_of(new_c), new_c.cdata.size(0), new_c.cdata.size(1), rows(grad_h), rows(grad_c), rows(gates),
        rows(new_c), d_gates.cdata.mutable_data_ptr(), d_c.cdata.mutable_data_ptr(), NULL)


def column_sums(torch.Tensor matrix not None, torch.Tensor sums not None):
    return lltm_sum(
        dtype_of(matrix), matrix.cdata.size(0), matrix.cdata.size(1), matrix.cdata.const_data_ptr(),
        sums.cdata.mutable_data_ptr(), NULL)
