"""The operator your_project::softclip, its kernel for the CPU and its gradient; cuda_ops.pyx has that for CUDA."""

cimport ATen as at
from torch.autograd cimport Context
from torch.library cimport define, impl, register_autograd


cdef at.Tensor softclip_tensor(const at.Tensor& x, double limit) except * nogil:
    return at.mul(at.tanh(at.div(x, limit)), limit)


cdef void softclip_setup(Context& ctx, const at.Tensor& x, double limit, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(result)
    ctx.state[double]()[0] = limit


cdef (at.Tensor, at.Tensor) softclip_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor t = at.div(ctx.saved_tensor(0), ctx.state[double]()[0])  # the hyperbolic tangent
    return at.mul(grad, 1 - t * t), at.Tensor()


define("your_project::softclip", "(Tensor x, float limit) -> Tensor")
impl("your_project::softclip", "CPU", softclip_tensor)
impl("your_project::softclip", "Meta", softclip_tensor)  # what ATen's functions do with tensors that have shapes alone
register_autograd("your_project::softclip", softclip_backward, softclip_setup)
