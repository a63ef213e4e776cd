# Kernels and gradients that raise, and registrations that must be rejected.
cimport ATen as at
cimport cython
cimport torch
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetString
from interop cimport tensors, tuple2
from libc.stdint cimport int64_t
from libcpp.vector cimport vector
from torch.autograd cimport Context, Function
from torch.library cimport Operator, define, impl, register_autocast, register_autograd


class Custom(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.b = b


cdef class Ending:
    def __dealloc__(self):
        raise ValueError("in a destructor")


cdef object raise_it(int64_t what):
    if what == 0:
        raise KeyError("a key")
    elif what == 1:
        raise Custom("custom", 7)
    elif what == 2:
        raise KeyboardInterrupt
    elif what == 3:
        import signal
        signal.raise_signal(signal.SIGINT)
        PyErr_CheckSignals()
    elif what == 4:
        raise MemoryError("no memory")
    elif what == 5:
        import torch as t
        raise t.OutOfMemoryError("no memory on the device")
    elif what == 6:
        raise StopIteration(5)
    elif what == 7:
        raise SystemExit(3)
    elif what == 8:
        Ending()


cdef at.Tensor fail_star(const at.Tensor& x, int64_t what) except * nogil:
    if what < 0:
        return at.mm(x, x)  # an exception of C++
    with gil:
        raise_it(what)
    return x.clone()


cdef at.Tensor fail_plus(const at.Tensor& x, int64_t what) except + nogil:
    if what < 0:
        return at.mm(x, x)
    with gil:
        raise_it(what)
    return x.clone()


cdef at.Tensor fail_noexcept(const at.Tensor& x, int64_t what) noexcept nogil:
    if what < 0:
        return at.mm(x, x)
    with gil:
        raise_it(what)
    return x.clone()


@cython.unraisable_tracebacks(True)
cdef at.Tensor fail_traced(const at.Tensor& x, int64_t what) noexcept nogil:
    if what < 0:
        return at.mm(x, x)
    with gil:
        raise_it(what)
    return x.clone()


cdef void fail_void(at.Tensor& x, int64_t what) except * nogil:
    if what < 0:
        at.mm(x, x)
    with gil:
        raise_it(what)


cdef int64_t fail_number(const at.Tensor& x, int64_t what) except? -1 nogil:
    if what < 0:
        at.mm(x, x)
    with gil:
        raise_it(what)
    return -1


cdef at.Tensor good_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return grad


cdef (at.Tensor, at.Tensor) bad_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef int64_t what = ctx.state[int64_t]()[0]
    if what < 0:
        at.mm(grad, grad)
    with gil:
        raise_it(what)
    return grad, at.Tensor()


cdef void bad_setup(Context& ctx, const at.Tensor& x, int64_t what, const at.Tensor& y) except * nogil:
    ctx.state[int64_t]()[0] = what


cdef at.Tensor clone(const at.Tensor& x, int64_t what) except * nogil:
    return x.clone()


define("interop_test::fail_star", "(Tensor x, int what) -> Tensor")
impl("interop_test::fail_star", "CompositeExplicitAutograd", fail_star)
define("interop_test::fail_plus", "(Tensor x, int what) -> Tensor")
impl("interop_test::fail_plus", "CompositeExplicitAutograd", fail_plus)
define("interop_test::fail_noexcept", "(Tensor x, int what) -> Tensor")
impl("interop_test::fail_noexcept", "CompositeExplicitAutograd", fail_noexcept)
define("interop_test::fail_traced", "(Tensor x, int what) -> Tensor")
impl("interop_test::fail_traced", "CompositeExplicitAutograd", fail_traced)
define("interop_test::fail_void", "(Tensor(a!) x, int what) -> ()")
impl("interop_test::fail_void", "CompositeExplicitAutograd", fail_void)
define("interop_test::fail_number", "(Tensor x, int what) -> int")
impl("interop_test::fail_number", "CompositeExplicitAutograd", fail_number)
define("interop_test::fail_backward", "(Tensor x, int what) -> Tensor")
impl("interop_test::fail_backward", "CompositeExplicitAutograd", clone)
register_autograd("interop_test::fail_backward", bad_backward, bad_setup)
# Kernels for tensors of the machine alone: fake tensors must not reach them.
define("interop_test::fail_cpu", "(Tensor x, int what) -> Tensor")
impl("interop_test::fail_cpu", "CPU", fail_star)
impl("interop_test::fail_cpu", "Meta", clone)


cdef int raise_what_is_set() except? 0:
    return 0


def with_an_error_set(torch.Tensor x not None, int64_t what):
    cdef Operator[at.Tensor] op = Operator[at.Tensor](b"interop_test::fail_star")
    cdef at.Tensor t = x.cdata
    PyErr_SetString(LookupError, "the first")
    op.call(t, what)
    raise_what_is_set()


cdef void nothing(const at.Tensor& x) except * nogil:
    pass


cdef at.Tensor changing(at.Tensor& x) except * nogil:
    return x.add_(1)


cdef at.Tensor one(const at.Tensor& x) except * nogil:
    return x.clone()


cdef at.Tensor three(const at.Tensor& a, const at.Tensor& b, int64_t s) except * nogil:
    return a.clone()


cdef at.Tensor of_number(const at.Tensor& x, double c) except * nogil:
    return x.clone()


cdef at.Tensor flagged(const at.Tensor& x, bint flag, int number) except * nogil:
    return x.clone()


cdef (at.Tensor, at.Tensor) two_gradients(Context& ctx, const at.Tensor& grad) except * nogil:
    return grad, grad


cdef at.Tensor of_two(Context& ctx, const at.Tensor& a, const at.Tensor& b) except * nogil:
    return a


cdef void setup_wrong(Context& ctx, const at.Tensor& x, double y) except * nogil:
    pass


define("interop_test::given", "(Tensor x) -> Tensor")
define("interop_test::given3", "(Tensor a, Tensor b, float s) -> Tensor")
define("interop_test::given_complex", "(Tensor x, complex c) -> Tensor")
define("interop_test::given_flag", "(Tensor x, bool flag, int number) -> Tensor")
define("interop_test::given_change", "(Tensor(a!) x) -> ()")
define("interop_test::given_implicit", "(Tensor x) -> Tensor")
define("interop_test::given_gradient", "(Tensor x) -> Tensor")
define("interop_test::given_lists", "(Tensor x) -> Tensor?[]")
impl("interop_test::given", "CPU", one)
impl("interop_test::given_implicit", "CompositeImplicit", one)
register_autograd("interop_test::given_gradient", good_backward)


def refused(what):
    if what == "defined twice":
        define("interop_test::given", "(Tensor x, Tensor y) -> Tensor")
    elif what == "defined by torch":
        define("aten::mm", "(Tensor x) -> Tensor")
    elif what == "schema":
        define("interop_test::new", "(Tensor a -> Tensor")
    elif what == "schema type":
        define("interop_test::new", "(Tensr a) -> Tensor")
    elif what == "schema name":
        define("interop_test::new", "new(Tensor a) -> Tensor")
    elif what == "name":
        define("new", "(Tensor a) -> Tensor")
    elif what == "unknown operator":
        impl("interop_test::unknown", "CPU", one)
    elif what == "unknown key":
        impl("interop_test::given", "Cpu", one)
    elif what == "kernel twice":
        impl("interop_test::given", "CPU", one)
    elif what == "number of arguments":
        impl("interop_test::given", "CUDA", three)
    elif what == "type of an argument":
        impl("interop_test::given3", "CPU", three)
    elif what == "change that is not in the schema":
        impl("interop_test::given", "CUDA", changing)
    elif what == "result":
        impl("interop_test::given", "CUDA", nothing)
    elif what == "int and bint":
        impl("interop_test::given_flag", "CPU", flagged)
    elif what == "gradients":
        register_autograd("interop_test::given", two_gradients)
    elif what == "gradients of results":
        register_autograd("interop_test::given", of_two)
    elif what == "type that no kernel has":
        impl("interop_test::given_complex", "CPU", of_number)
    elif what == "setup_context":
        register_autograd("interop_test::given", good_backward, setup_wrong)
    elif what == "gradient of a change":
        register_autograd("interop_test::given_change", good_backward)
    elif what == "gradient of an implicit kernel":
        register_autograd("interop_test::given_implicit", good_backward)
    elif what == "implicit kernel of a gradient":
        impl("interop_test::given_gradient", "CompositeImplicit", one)
    elif what == "gradient of an optional list":
        register_autograd("interop_test::given_lists", good_backward)
    elif what == "autocast to int":
        register_autocast("interop_test::given", "cpu", at.kInt)
    elif what == "autocast device":
        register_autocast("interop_test::given", "Autograd", at.kHalf)


# Functions.

cdef at.Tensor forward(Context& ctx, const at.Tensor& x) except * nogil:
    return x.clone()


cdef at.Tensor forward_of_a_number(Context& ctx, const at.Tensor& x, int64_t n) except * nogil:
    return x.clone()


cdef at.Tensor twice_saved(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.save_for_backward(x)
    ctx.save_for_backward(x, x)
    return x.clone()


cdef at.Tensor saved_out_of_range(Context& ctx, const at.Tensor& grad) except * nogil:
    return ctx.saved_tensor(3)


cdef at.Tensor two_states(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.state[double]()
    ctx.state[int64_t]()
    return x.clone()


cdef (at.Tensor, at.Tensor) gradient_of_a_number(Context& ctx, const at.Tensor& grad) except * nogil:
    return grad, grad


cdef at.Tensor marks_another(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.mark_dirty(at.mul(x, 2))
    return at.mul(x, 2)


cdef struct Small:
    int64_t n


cdef at.Tensor two_structs(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.state[Small]()
    ctx.state[vector[at.Tensor]]()
    return x.clone()


cdef at.Tensor structured(Context& ctx, const at.Tensor& x, Small s) except * nogil:
    return x.clone()


cdef at.Tensor saved_negative(Context& ctx, const at.Tensor& grad) except * nogil:
    return ctx.saved_tensor(-1)


cdef at.Tensor needs_negative(Context& ctx, const at.Tensor& grad) except * nogil:
    ctx.needs_input_grad(-1)
    return grad


cdef Function[at.Tensor] undefined_function, marking, structs, with_struct, negative, negative2
structs.define("Structs", two_structs, good_backward)
with_struct.define("Structured", structured, gradient_of_a_number)
negative.define("Negative", forward, saved_negative)
negative2.define("Negative2", forward, needs_negative)
marking.define("Marking", marks_another, good_backward)
cdef Function[at.Tensor] identity, saving_twice, out_of_range, states, of_a_number
cdef Function[tuple2[at.Tensor, at.Tensor]] pair
identity.define("Identity", forward, good_backward)
saving_twice.define("SavingTwice", twice_saved, good_backward)
out_of_range.define("OutOfRange", forward, saved_out_of_range)
states.define("States", two_states, good_backward)
of_a_number.define("OfANumber", forward_of_a_number, gradient_of_a_number)


def refused_function(torch.Tensor x not None, what):
    cdef Function[at.Tensor] new
    if what == "undefined":
        undefined_function.apply(x.cdata)
    elif what == "defined twice":
        identity.define("Identity", forward, good_backward)
    elif what == "gradients":
        new.define("New", forward, two_gradients)
    elif what == "gradients of results":
        new.define("New", forward, of_two)
    elif what == "arguments":
        identity.apply(x.cdata, x.cdata)
    elif what == "type":
        of_a_number.apply(x.cdata, x.cdata)
    elif what == "float for int":
        of_a_number.apply(x.cdata, 2.5)
    elif what == "saving twice":
        saving_twice.apply(x.cdata)
    elif what == "two states":
        states.apply(x.cdata)
    elif what == "two structs":
        structs.apply(x.cdata)
    elif what == "number for a struct":
        with_struct.apply(x.cdata, <int64_t> 2)
    elif what == "vector for a struct":
        with_struct.apply(x.cdata, tensors(x.cdata))
    elif what == "saved_tensor(-1)":
        return torch.wrap(negative.apply(x.cdata))
    elif what == "needs_input_grad(-1)":
        return torch.wrap(negative2.apply(x.cdata))
    elif what == "object for int":
        of_a_number.apply(x.cdata, what)
    elif what == "mark_dirty":
        marking.apply(x.cdata)
    elif what == "mark_dirty without a graph":
        marking.apply(x.cdata.detach())
    elif what == "saved_tensor out of range":
        return torch.wrap(out_of_range.apply(x.cdata))
    elif what == "gradient of a number":
        return torch.wrap(of_a_number.apply(x.cdata, 2))
