# torch.library in a module for many releases of torch: `from torch.library cimport define, impl`. A kernel is a cdef
# function that needs no GIL:
#     cdef at.Tensor scaled_mm(const at.Tensor& a, const at.Tensor& b, double s) except * nogil: ...
#
# An error that a kernel raises reaches a caller in Python with its class, message and traceback, if that calls
# torch.ops; docs/stable-guide.md has the other cases.
from libcpp.string cimport string

from interop.exceptions cimport translate_exception

cdef extern from "interop/library.h" namespace "interop::stable":
    # Makes the operator torch.ops.NAMESPACE.NAME: define("demo::mul", "(Tensor a, float s) -> Tensor").
    void define "INTEROP_STABLE_DEFINE"(const string& name, const string& schema) except +translate_exception
    # Gives it a kernel for a dispatch key ("CPU", "Meta", "CompositeImplicitAutograd", ...) or a device ("cpu", ...).
    void impl "INTEROP_STABLE_IMPL"(const string& name, const string& key, ...) except +translate_exception
    # Gives it a gradient, as torch.library.register_autograd does: `backward(ctx, *grads)` and `setup_context(ctx,
    # inputs, output)` are Python functions. torch.compile traces them, so they call operators only.
    void register_autograd(const string& name, object backward, object setup_context) except +translate_exception
