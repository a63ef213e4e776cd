# A module as a user would write it. The tests build it from a copy of this folder, as a project that is not ours.
"""Cython code that holds tensors, calls ATen without the GIL, and wraps results."""

cimport torch
cimport ATen as at
from interop cimport check, get0, get1, tuple2
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

import torch


# Attributes.

cdef class Accumulator:
    """Holds a tensor in a typed attribute and adds to it in place."""

    cdef readonly torch.Tensor total

    def __init__(self, torch.Tensor start not None):
        self.total = start

    def add(self, torch.Tensor x not None):
        cdef at.Tensor total = self.total.cdata, value = x.cdata
        with nogil:
            total.add_(value)

    def replace(self, value):
        self.total = value


cdef class Projection:
    """Multiplies into a tensor that it allocated once."""

    cdef torch.Tensor weight
    cdef readonly torch.Tensor out

    def __init__(self, torch.Tensor weight not None, long rows):
        cdef torch.NoGradGuard _guard = torch.NoGradGuard()
        self.weight = weight
        self.out = torch.wrap(at.zeros((rows, weight.cdata.size(1)), weight.cdata.options()))

    def __call__(self, torch.Tensor x not None):
        cdef torch.NoGradGuard _guard = torch.NoGradGuard()
        cdef at.Tensor out = self.out.cdata
        at.mm_out(out, x.cdata, self.weight.cdata)
        return self.out


cdef class Native:
    """Holds an at::Tensor, not a Python object."""

    cdef at.Tensor value

    def __init__(self, torch.Tensor value not None):
        self.value = value.cdata

    def get(self):
        return torch.wrap(self.value)


# Calls.

def empty_call(x):
    return x


def numel(torch.Tensor x):
    return x.cdata.numel()


def linear(torch.Tensor x not None, torch.Tensor weight not None):
    cdef at.Tensor y, a = x.cdata, w = weight.cdata
    with nogil:
        y = at.linear(a, w)
    return torch.wrap(y)


def normalised(torch.Tensor x not None):
    cdef at.Tensor y, a = x.cdata
    with nogil:
        y = (a - at.mean(a)) / at.std(a, True)
    return torch.wrap(y)


def maximum(torch.Tensor x not None, long dim):
    cdef tuple2[at.Tensor, at.Tensor] result = at.max(x.cdata, dim)
    return torch.wrap(get0(result)), torch.wrap(get1(result))


def overloads(torch.Tensor x not None):
    """Calls whose numbers C++ alone would take for other ones."""
    cdef at.Tensor t = x.cdata
    cdef bint no = False
    cdef long one = 1
    cdef int dim = 1, two = 2
    cdef bytes floor = b"floor"
    cdef vector[int64_t] first = (0,), pair = (2,)
    cdef tuple2[at.Tensor, at.Tensor] stable = at.sort(t, True, 0, True), along = at.sort(t, 0, True)
    return {
        "unbiased": torch.wrap(at.std(t, True)),
        "biased": torch.wrap(at.std(t, no)),
        "along": torch.wrap(at.std(t, 1)),
        "along a variable": torch.wrap(at.var(t, one)),
        "along an int": torch.wrap(at.std(t, dim)),
        "sorted along an int": torch.wrap(at.argsort(t, dim)),
        "correction, int": torch.wrap(at.std(t, first, two, False)),
        "repeated": torch.wrap(at.repeat_interleave(t, 2)),
        "pseudo-inverse": torch.wrap(at.linalg_pinv(t, at.full(pair, 0.5, t.options())[0])),
        "above": torch.wrap(t > 0.5),
        "below": torch.wrap(t <= 1),
        "first value": t.data_ptr[float]()[0],
        "rounded down": torch.wrap(at.div(t, 0.5, floor)),
        "correction": torch.wrap(at.std(t, first, 2, False)),
        "correction, double": torch.wrap(at.var(t, first, 0.5, False)),
        "stable": torch.wrap(get0(stable)),
        "descending": torch.wrap(get0(along)),
        "alpha": torch.wrap(at.add(t, t, 2)),
        "alpha, double": torch.wrap(at.sub(t, t, 0.5)),
        "int power": torch.wrap(at.pow(t, 2)),
        "base": torch.wrap(at.pow(2, t)),
        "clamp": torch.wrap(at.clamp(t, -1, 0.5)),
        "full": torch.wrap(at.full(pair, 3, at.TensorOptions(at.kInt))),
        "arange": torch.wrap(at.arange(5)),
        "arange, double": torch.wrap(at.arange(0.0, 1.0, 0.25)),
    }


# Identity and ownership.

def roundtrip(torch.Tensor x not None):
    return torch.wrap(x.cdata)


def unpack(obj):
    return torch.wrap(torch.unpack(obj))


def undefined():
    cdef at.Tensor nothing
    return torch.wrap(nothing)


def many_roundtrips(torch.Tensor x not None, long count):
    cdef long _
    cdef torch.Tensor y
    for _ in range(count):
        y = torch.wrap(torch.unpack(x))
        if y is not x:
            raise AssertionError("wrap made another object")


# Errors: each function passes its argument on to ATen, unchecked.

def mm(torch.Tensor a not None, torch.Tensor b not None):
    cdef at.Tensor y, left = a.cdata, right = b.cdata
    with nogil:
        y = at.mm(left, right)
    return torch.wrap(y)


def select(torch.Tensor x not None, long dim, long index):
    return torch.wrap(at.select(x.cdata, dim, index))


def first(torch.Tensor x not None, long index):
    return torch.wrap(x.cdata[index])


def size(torch.Tensor x not None, long dim):
    return x.cdata.size(dim)


def bitwise_not(torch.Tensor x not None):
    return torch.wrap(at.bitwise_not(x.cdata))


def add_(torch.Tensor x not None, torch.Tensor y not None):
    x.cdata.add_(y.cdata)


def inverse(torch.Tensor x not None):
    return torch.wrap(at.linalg_inv(x.cdata))


def zeros(shape):
    return torch.wrap(at.zeros(shape))


def dim_of_default(torch.Tensor x):
    cdef long dim
    with nogil:
        dim = x.cdata.dim()
    return dim


# Modes and warnings.

def grad_mode_in_guard():
    cdef torch.NoGradGuard _guard = torch.NoGradGuard()
    return torch.is_grad_enabled()


def auto_grad_mode(bint enabled):
    before = torch.is_grad_enabled()
    cdef torch.AutoGradMode _mode = torch.AutoGradMode(enabled)
    return before, torch.is_grad_enabled()


def inference_mode():
    cdef torch.InferenceMode _mode = torch.InferenceMode()
    return torch.is_inference_mode_enabled()


def inference_mode_off():
    cdef torch.InferenceMode _mode = torch.InferenceMode(False)
    return torch.is_inference_mode_enabled()


def guard_and_raise():
    cdef torch.NoGradGuard _guard = torch.NoGradGuard()
    raise KeyError("left by an exception")


def message_of_several_lines():
    check(False, b"first line\n\nlast line")


def made_with_gradients(torch.Tensor x not None):
    cdef at.TensorOptions options = at.TensorOptions(at.kDouble).requires_grad(True)
    return [
        torch.wrap(at.zeros((2, 3), options)), torch.wrap(at.empty((2, 3), options)),
        torch.wrap(at.empty_like(x.cdata, options)), torch.wrap(x.cdata.new_empty((2, 3), options)),
    ]


def converted_with_gradients(torch.Tensor x not None):
    return torch.wrap(x.cdata.to(at.TensorOptions(at.kDouble).requires_grad(True)))


def warn_in_scope(torch.Tensor x not None, torch.Tensor out not None, bint emit=True):
    """Resizing a non-empty out tensor makes torch warn."""
    cdef torch.WarningScope warnings
    cdef at.Tensor a = x.cdata, o = out.cdata
    with nogil:
        at.neg_out(o, a)
    if emit:
        warnings.emit()


def warnings_in_steps():
    """A generator holds its scope between its steps, and even before the first."""
    cdef torch.WarningScope warnings
    yield
    warnings.emit()


def warn_then_fail(torch.Tensor x not None, torch.Tensor out not None):
    cdef torch.WarningScope warnings
    at.neg_out(out.cdata, x.cdata)
    at.mm(x.cdata, x.cdata)
    warnings.emit()
