# Operators with CUDA kernels out of functors, and launches that fail.
cimport ATen as at
cimport torch
from c10.core.Device cimport Device
from interop.cuda cimport Elementwise, Launch, check_data, elementwise_into, elementwise_with_integers
from libcpp.string cimport string
from torch.library cimport define, impl

cdef extern from "operators.h" nogil:
    int _swish "swish"(const Elementwise& arguments, double beta, void* stream) noexcept
    int _hypotenuse "hypotenuse"(const Elementwise& arguments, void* stream) noexcept
    int _multiply_add "multiply_add"(const Elementwise& arguments, void* stream) noexcept
    int _touch "touch"(float* target, int threads, void* stream) noexcept


cdef at.Tensor swish(const at.Tensor& x, double beta) except * nogil:
    cdef Elementwise e = Elementwise(x)
    cdef Launch launch = Launch(x)
    launch.check(_swish(e, beta, launch.stream()), b"swish")
    return e.output()


cdef at.Tensor swish_meta(const at.Tensor& x, double beta) except * nogil:
    return at.sigmoid(x)


cdef at.Tensor hypotenuse(const at.Tensor& x, const at.Tensor& y) except * nogil:
    cdef Elementwise e = Elementwise(x, y)
    cdef Launch launch = Launch(e.output())
    launch.check(_hypotenuse(e, launch.stream()), b"hypotenuse")
    return e.output()


cdef at.Tensor multiply_add(const at.Tensor& x, const at.Tensor& y, const at.Tensor& z) except * nogil:
    cdef Elementwise e = elementwise_with_integers(x, y, z)
    cdef Launch launch = Launch(x)
    launch.check(_multiply_add(e, launch.stream()), b"multiply_add")
    return e.output()


cdef at.Tensor hypotenuse_meta(const at.Tensor& x, const at.Tensor& y) except * nogil:
    cdef Elementwise e = Elementwise(x, y)
    return e.output()


cdef at.Tensor multiply_add_meta(const at.Tensor& x, const at.Tensor& y, const at.Tensor& z) except * nogil:
    cdef Elementwise e = elementwise_with_integers(x, y, z)
    return e.output()


cdef void hypotenuse_into(const at.Tensor& x, const at.Tensor& y, const at.Tensor& out) except * nogil:
    cdef Elementwise e = elementwise_into(out, x, y)
    cdef Launch launch = Launch(x)
    launch.check(_hypotenuse(e, launch.stream()), b"hypotenuse")


define("interop_cuda_test::swish", "(Tensor x, float beta) -> Tensor")
impl("interop_cuda_test::swish", "CUDA", swish)
impl("interop_cuda_test::swish", "Meta", swish_meta)
define("interop_cuda_test::hypotenuse", "(Tensor x, Tensor y) -> Tensor")
impl("interop_cuda_test::hypotenuse", "CUDA", hypotenuse)
impl("interop_cuda_test::hypotenuse", "Meta", hypotenuse_meta)
define("interop_cuda_test::multiply_add", "(Tensor x, Tensor y, Tensor z) -> Tensor")
impl("interop_cuda_test::multiply_add", "CUDA", multiply_add)
impl("interop_cuda_test::multiply_add", "Meta", multiply_add_meta)
define("interop_cuda_test::hypotenuse_into", "(Tensor x, Tensor y, Tensor(a!) out) -> ()")
impl("interop_cuda_test::hypotenuse_into", "CUDA", hypotenuse_into)


# The kernels without the dispatcher, which gives them no fake tensors.

def call_swish(torch.Tensor x not None, double beta):
    return torch.wrap(swish(x.cdata, beta))


def call_hypotenuse(torch.Tensor x not None, torch.Tensor y not None):
    return torch.wrap(hypotenuse(x.cdata, y.cdata))


def call_hypotenuse_into(torch.Tensor x not None, torch.Tensor y not None, torch.Tensor out not None):
    hypotenuse_into(x.cdata, y.cdata, out.cdata)


def check_tensor(torch.Tensor x not None):
    check_data(x.cdata, b"x")


def launch_on(str device):
    """The stream of a launch on a device."""
    cdef string name = device.encode()
    cdef Launch launch = Launch(Device(name))
    return <size_t>launch.stream()


def launch_nothing():
    cdef Elementwise e = Elementwise()
    cdef Launch launch = Launch()
    launch.check(_hypotenuse(e, NULL), b"hypotenuse")


def elementwise_output(torch.Tensor x not None, torch.Tensor y not None):
    cdef Elementwise e = Elementwise(x.cdata, y.cdata)
    return torch.wrap(e.output())


def unassigned():
    cdef Launch launch = Launch()
    return <size_t>launch.stream()


def check_error(int error):
    cdef Launch launch = Launch()
    launch.check(error, b"a_kernel")


def touch_without_a_device(int threads):
    """What the CUDA runtime says to a launch that no check came before."""
    cdef Launch launch = Launch()
    launch.check(_touch(NULL, threads, NULL), b"touch")


def touch(torch.Tensor target not None, int threads):
    cdef Launch launch = Launch(target.cdata)
    launch.check(_touch(<float*>target.cdata.mutable_data_ptr(), threads, launch.stream()), b"touch")


def touch_address(torch.Tensor like not None, size_t address):
    """Writes to an address on the device of `like`."""
    cdef Launch launch = Launch(like.cdata)
    launch.check(_touch(<float*>address, 1, launch.stream()), b"touch")
