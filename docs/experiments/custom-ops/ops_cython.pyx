# exp(x) as an operator, as an operator with a gradient, and as a function with a gradient; with derivatives in forward
# mode, and a rule for vmap, in Cython and in Python.
cimport ATen as at
cimport torch
from torch.autograd cimport Context, Function
from torch.library cimport Operator, VmapInfo, define, impl, register_autograd, register_vmap


cdef at.Tensor kernel(const at.Tensor& x) except * nogil:
    return at.exp(x)


cdef void setup_context(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(result)


cdef at.Tensor backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, ctx.saved_tensor(0))


cdef at.Tensor jvp(Context& ctx, const at.Tensor& tangent) except * nogil:
    return at.mul(tangent, ctx.saved_tensor(0))


define("ops_cython::exp", "(Tensor x) -> Tensor")
impl("ops_cython::exp", "CPU", kernel)
impl("ops_cython::exp", "Meta", kernel)


cdef at.Tensor rule(VmapInfo& info, const at.Tensor& x) except * nogil:
    info.set_out_dim(0, info.in_dim(0))
    return Operator[at.Tensor](b"ops_cython::exp").call(x)


register_vmap("ops_cython::exp", rule)

define("ops_cython::exp_with_gradient", "(Tensor x) -> Tensor")
impl("ops_cython::exp_with_gradient", "CPU", kernel)
impl("ops_cython::exp_with_gradient", "Meta", kernel)
register_autograd("ops_cython::exp_with_gradient", backward, setup_context, jvp)


define("ops_cython::exp_with_rule_in_python", "(Tensor x) -> Tensor")
impl("ops_cython::exp_with_rule_in_python", "CPU", kernel)
impl("ops_cython::exp_with_rule_in_python", "Meta", kernel)


def rule_in_python(info, in_dims, torch.Tensor x not None):
    return torch.wrap(Operator[at.Tensor](b"ops_cython::exp_with_rule_in_python").call(x.cdata)), in_dims[0]


cdef at.Tensor forward(Context& ctx, const at.Tensor& x) except * nogil:
    cdef at.Tensor y = at.exp(x)
    ctx.save_for_backward(y)
    return y


cdef Function[at.Tensor] function
function.define("Exp", forward, backward, jvp)


def exp(torch.Tensor x not None):
    return torch.wrap(function.apply(x.cdata))


def exp_unregistered(torch.Tensor x not None):
    return torch.wrap(kernel(x.cdata))
