"""Expressions in Cython, and their equivalents in Python."""

from dataclasses import dataclass

MODULE = """\
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

cimport ATen as at
cimport interop
cimport torch

import torch


cdef enum:
    TWO = 2


cdef enum Axis:
    LAST = -1


{functions}
def any_of(name, *arguments):
    return globals()[name](*arguments)


def zeros(shape): return torch.wrap(at.zeros(shape))
def add(torch.Tensor x not None, other): return torch.wrap(at.add(x.cdata, other))
def sum(torch.Tensor x not None, dims): return torch.wrap(at.sum(x.cdata, dims))
def std(torch.Tensor x not None, unbiased_or_dim): return torch.wrap(at.std(x.cdata, unbiased_or_dim))
def std_of_columns(torch.Tensor x not None, unbiased): return torch.wrap(at.std(x.cdata, (0,), unbiased))
def clamp(torch.Tensor x not None, low, high): return torch.wrap(at.clamp(x.cdata, low, high))
def full(shape, value, options): return torch.wrap(at.full(shape, value, options))
def cat(tensors): return torch.wrap(at.cat(tensors, 0))
def view(torch.Tensor x not None, shape): return torch.wrap(x.cdata.view(shape))
def to_options(options): return torch.wrap(at.zeros((1,), options))
def rounded(torch.Tensor x not None, mode): return torch.wrap(at.div(x.cdata, 2.0, mode))


def forever(torch.Tensor x not None, obj):
    cdef at.Tensor t = x.cdata, r
    with nogil:
        while True:
            r = at.add(t, obj)


def objects_without_gil(torch.Tensor x not None, shape, options, number):
    cdef at.Tensor t = x.cdata, z, a
    with nogil:
        z = at.zeros(shape, options)
        a = at.add(t, number)
    return torch.wrap(z), torch.wrap(a)
"""

FUNCTION = """\
def {name}(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Tensor t = x.cdata, u = y.cdata
    cdef int n = 2
    cdef int64_t m = 3
    cdef uint8_t small = 2
    cdef uint64_t large = 2
    cdef float f = 0.5
    cdef double d = 0.5
    cdef long double ld = 0.5
    cdef Axis axis = LAST
    cdef cbool yes = True
    cdef double complex z = 1 + 2j
    cdef float complex zf = 1 + 2j
    cdef vector[int64_t] v
    cdef at.Scalar s = at.Scalar(2.5)
    cdef {type} result
    v.push_back(2)
    v.push_back(3)
    {start}result = {call}
    return {back}


"""


@dataclass(frozen=True)
class CallForm:
    """A Cython expression of t and u, and its Python equivalent of x and y, which are tensors of 2 x 3 floats."""

    cython: str
    python: str
    needs_gil: bool = False
    type: str = "at.Tensor"

    @property
    def stable(self) -> bool:
        """Whether stable modules have it; they have no indices of several kinds."""
        return not any(word in self.cython for word in ("indices(", "Slice", "None_", "Ellipsis"))


S = CallForm
PAIR = "interop.tuple2[at.Tensor, at.Tensor]"
CALL_FORMS = [
    S("at.mul(t, 2.0)", "x * 2.0"),
    S("at.mul(t, 2)", "x * 2"),
    S("at.mul(t, n)", "x * 2"),
    S("at.mul(t, small)", "x * 2"),
    S("at.mul(t, large)", "x * 2"),
    S("at.mul(t, f)", "x * 0.5"),
    S("at.mul(t, s)", "x * 2.5"),
    S("at.mul(t, TWO)", "x * 2"),
    S("at.mul(t, <long>axis)", "x * -1"),
    S("at.sum(t, axis)", "x.sum(-1)"),
    S("t.sum(axis)", "x.sum(-1)"),
    S("at.sum(t, (axis, 0))", "x.sum((-1, 0))"),
    S("t + axis", "x - 1"),
    S("axis - t", "-1 - x"),
    S("at.mul(t, t.clone().add_(1))", "x * (x + 1)"),
    S("t.mul(t.clone().add_(1))", "x * (x + 1)"),
    S("at.cat((t.clone().add_(1), t))", "torch.cat((x + 1, x))"),
    S("at.cat(interop.tensors(t.clone().add_(1), t))", "torch.cat((x + 1, x))"),
    S("at.where(at.gt(t, 0), t.clone().add_(1), u)", "torch.where(x > 0, x + 1, y)"),
    S(
        "at.index_fill(t, 0, at.zeros((1,), at.kLong), t.sum().mul_(2))",
        "x.index_fill(0, torch.tensor([0]), x.sum() * 2)",
    ),
    S("t * t.clone().add_(1)", "x * (x + 1)"),
    S("t.clone().add_(1) * t", "x * (x + 1)"),
    S("t.clone().add_(1) + 1", "x + 1 + 1"),
    S("2.0 / t.clone().add_(1)", "2.0 / (x + 1)"),
    S("-t.clone().add_(1)", "-(x + 1)"),
    S("t.index(interop.indices(at.gt(t, 0).logical_not_()))", "x[~(x > 0)]"),
    S("t.view((v.at(1), v.at(0)))", "x.view(3, 2)"),
    S("at.sum(t, interop.dims(0, 1)[1])", "x.sum(1)"),
    S("at.full((2,), ld)", "torch.full((2,), 0.5)"),
    S("at.all(at.gt(t, 0), None)", "torch.all(x > 0, dim=None)"),
    S("at.bitwise_and(at.gt(t, 0), True)", "(x > 0) & True"),
    S("at.gt(t, 0) & at.gt(u, 0)", "(x > 0) & (y > 0)"),
    S("(&t)[0] + u", "x + y"),
    S("at.mul(t, u)", "x * y"),
    S("t * 2.0", "x * 2.0"),
    S("t + u", "x + y"),
    S("-t", "-x"),
    S("t[0]", "x[0]"),
    S("t[n - 1]", "x[1]"),
    S("at.zeros((2, 3))", "torch.zeros(2, 3)"),
    S("at.zeros((n, m))", "torch.zeros(2, 3)"),
    S("at.zeros((n, m), at.kFloat)", "torch.zeros(2, 3)"),
    S("at.zeros((n, 2 * m), at.kLong)", "torch.zeros(2, 6, dtype=torch.long)"),
    S("at.zeros([n, m], at.kInt)", "torch.zeros(2, 3, dtype=torch.int)", needs_gil=True),
    S("at.zeros(v)", "torch.zeros(2, 3)"),
    S("at.zeros(t.sizes())", "torch.zeros(2, 3)"),
    S("at.zeros(interop.dims(2, 3))", "torch.zeros(2, 3)"),
    S("at.zeros(interop.dims())", "torch.zeros(())"),
    S("at.zeros(())", "torch.zeros(())", needs_gil=True),
    S("at.zeros(x.shape)", "torch.zeros(2, 3)", needs_gil=True),
    S("at.zeros((2,), x.dtype)", "torch.zeros(2)", needs_gil=True),
    S("at.zeros((2,), None)", "torch.zeros(2)"),
    S("at.empty((2,), t.options().dtype(at.kInt)).fill_(7)", "torch.full((2,), 7, dtype=torch.int)"),
    S("at.full((2,), 1.5)", "torch.full((2,), 1.5)"),
    S("at.full((2,), True)", "torch.full((2,), True)"),
    S("at.full((n,), n)", "torch.full((2,), 2)"),
    S("at.full((n,), 1, at.kDouble)", "torch.full((2,), 1, dtype=torch.double)"),
    S("at.arange(5)", "torch.arange(5)"),
    S("at.arange(1, 5, at.kFloat)", "torch.arange(1, 5, dtype=torch.float)"),
    S("at.arange(1.0, 2.0, d)", "torch.arange(1.0, 2.0, 0.5)"),
    S("at.sum(t)", "x.sum()"),
    S("at.sum(t, (0, 1), True)", "x.sum((0, 1), True)"),
    S("at.sum(t, (0,))", "x.sum((0,))"),
    S("at.sum(t, 0)", "x.sum(0)"),
    S("at.sum(t, -1)", "x.sum(-1)"),
    S("at.sum(t, at.kDouble)", "x.sum(dtype=torch.double)"),
    S("at.sum(t, None, True)", "x.sum(None, True)"),
    S("at.sum(t, (0,), False, at.kDouble)", "x.sum((0,), False, dtype=torch.double)"),
    S("at.sum(t, (0,), False, None)", "x.sum((0,), False)"),
    S("t.sum((0, 1), True)", "x.sum((0, 1), True)"),
    S("t.view((-1, 2))", "x.view(-1, 2)"),
    S("t.view((3, n))", "x.view(3, 2)"),
    S("t.view([3, 2])", "x.view(3, 2)", needs_gil=True),
    S("t.view(interop.dims(3, 2))", "x.view(3, 2)"),
    S("t.view(at.kInt)", "x.view(torch.int)"),
    S("t.reshape((-1,))", "x.reshape(-1)"),
    S("t.permute((1, 0))", "x.permute(1, 0)"),
    S("t.expand((4, n, m))", "x.expand(4, 2, 3)"),
    S("t.transpose(0, 1)", "x.transpose(0, 1)"),
    S("t.size(0)", "x.size(0)", type="int64_t"),
    S("t.to(at.kDouble)", "x.to(torch.double)"),
    S("t.to(t.options().dtype(at.kInt))", "x.to(torch.int)"),
    S("t.sum().item[double]()", "x.sum().item()", type="double"),
    S("t.data_ptr[float]()[1]", "x[0, 1].item()", type="float"),
    S("t.clamp(None, 0.5)", "x.clamp(max=0.5)"),
    S("t.new_zeros((2,))", "x.new_zeros(2)"),
    S("t.repeat((2, 1))", "x.repeat(2, 1)"),
    S("t.split(1)[1]", "x.split(1)[1]"),
    S("t.all(0)", "x.all(0)"),
    S("at.cat(interop.tensors(t, u), 1)", "torch.cat([x, y], 1)"),
    S("at.cat((t, u), 1)", "torch.cat([x, y], 1)"),
    S("at.cat([x, y], 1)", "torch.cat([x, y], 1)", needs_gil=True),
    S("at.stack((t, u, t))", "torch.stack([x, y, x])"),
    S("at.max(t, 1)", "x.max(1)", type=PAIR),
    S("interop.get1(at.max(t, 1))", "x.max(1)[1]"),
    S("at.max(t)", "x.max()"),
    S("at.max(t, u)", "torch.max(x, y)"),
    S("at.sort(t, 0)", "x.sort(0)", type=PAIR),
    S("at.sort(t, 0, True)", "x.sort(0, True)", type=PAIR),
    S("at.sort(t, True, 0)", "x.sort(stable=True, dim=0)", type=PAIR),
    S('at.einsum(b"ij,kj->ik", interop.tensors(t, u))', 'torch.einsum("ij,kj->ik", x, y)'),
    S('at.einsum(b"ij,kj->ik", (t, u))', 'torch.einsum("ij,kj->ik", x, y)'),
    S("at.clamp(t, None, 0.5)", "x.clamp(max=0.5)"),
    S("at.clamp(t, 0)", "x.clamp(0)"),
    S("at.clamp(t, -1, f)", "x.clamp(-1, 0.5)"),
    S("at.clamp(t, u)", "x.clamp(y)"),
    S("at.clamp(t, None, u)", "x.clamp(max=y)"),
    S("at.std(t, True)", "x.std()"),
    S("at.std(t, False)", "x.std(unbiased=False)"),
    S("at.std(t, yes)", "x.std()"),
    S("at.std(t, n > 1)", "x.std()"),
    S("at.std(t, 1)", "x.std(1)"),
    S("at.std(t, n - 1)", "x.std(1)"),
    S("at.std(t, (0, 1), False)", "x.std((0, 1), unbiased=False)"),
    S("at.std(t, (0, 1), 2)", "x.std((0, 1), correction=2)"),
    S("at.std(t, (0, 1), None)", "x.std((0, 1))"),
    S("at.where(at.gt(t, 0), True, False)", "torch.where(x > 0, True, False)"),
    S("at.where(at.gt(t, 0), t, 0.0)", "torch.where(x > 0, x, 0.0)"),
    S("at.where(at.gt(t, 0), 1, u)", "torch.where(x > 0, 1, y)"),
    S("at.mul(at.gt(t, 0), True)", "torch.mul(x > 0, True)"),
    S("at.mul(at.gt(t, 0), 1)", "torch.mul(x > 0, 1)"),
    S("at.mul(at.gt(t, 0), n)", "torch.mul(x > 0, 2)"),
    S("at.mul(at.gt(t, 0), n > 1)", "torch.mul(x > 0, True)"),
    S("at.add(t, u, 2)", "torch.add(x, y, alpha=2)"),
    S("at.add(t, u, 0.5)", "torch.add(x, y, alpha=0.5)"),
    S("at.add(t, 3, 0.5)", "torch.add(x, 3, alpha=0.5)"),
    S("at.add(t, True, 2)", "torch.add(x, True, alpha=2)"),
    S("at.mul(t, 1 + 2j)", "x * (1 + 2j)"),
    S("at.mul(t, z)", "x * (1 + 2j)"),
    S("at.full((2,), z)", "torch.full((2,), 1 + 2j)"),
    S("at.full((2,), zf)", "torch.full((2,), 1 + 2j)"),
    S("at.full((2,), 1 + 2j)", "torch.full((2,), 1 + 2j)"),
    S("at.full((2,), s)", "torch.full((2,), 2.5)"),
    S("at.full((2,), f)", "torch.full((2,), 0.5)"),
    S("at.full((2,), x.shape[0])", "torch.full((2,), 2)", needs_gil=True),
    S("at.fft_fftn(t, None, None, b'ortho')", "torch.fft.fftn(x, None, None, 'ortho')"),
    S("at.sort(t, yes, 0)", "x.sort(stable=True, dim=0)", type=PAIR),
    S("at.sort(t, yes)", "x.sort(stable=True)", type=PAIR),
    S("interop.get2(at.svd(t))", "torch.svd(x)[2]"),
    S("t.clone().resize_((3, 2))", "x.clone().resize_(3, 2)"),
    S("t.to(at.kCPU, at.kDouble)", "x.to('cpu', torch.double)"),
    S("t.to(x.device, x.dtype)", "x", needs_gil=True),
    S("t.to(torch.float64)", "x.double()", needs_gil=True),
    S("at.mul(t, at.Scalar(d))", "x * 0.5"),
    S("at.mul(t, y)", "x * y", needs_gil=True),
    S("at.mul(t, x.shape[0])", "x * 2", needs_gil=True),
    S('at.div(t, 0.3, b"floor")', "torch.div(x, 0.3, rounding_mode='floor')"),
    S("at.div(t, u, None)", "torch.div(x, y)"),
    S(
        "at.conv1d(t.view((1, 1, 6)), u.view((1, 1, 6)), None, 1, (2,))",
        "torch.conv1d(x.view(1, 1, 6), y.view(1, 1, 6), None, 1, 2)",
    ),
    S("at.repeat_interleave(t, 2)", "torch.repeat_interleave(x, 2)"),
    S("at.count_nonzero(t, 0)", "torch.count_nonzero(x, 0)"),
    S("at.count_nonzero(t, (0, 1))", "torch.count_nonzero(x, (0, 1))"),
    S("at.norm(t, 2.0, (0,))", "torch.norm(x, 2.0, (0,))"),
    S("at.linalg_norm(t, None, (1,))", "torch.linalg.norm(x, None, 1)"),
    S("at.softmax(t, 1)", "x.softmax(1)"),
    S("at.softmax(t, 1, at.kDouble)", "x.softmax(1, dtype=torch.double)"),
    S("at.quantile(t, 0.5, 1)", "x.quantile(0.5, 1)"),
    S("at.gradient(t, (0, 1))[0]", "torch.gradient(x, dim=(0, 1))[0]"),
    S("at.tensor_split(t, 2, 1)[1]", "x.tensor_split(2, 1)[1]"),
    S("at.roll(t, 1, 1)", "x.roll(1, 1)"),
    S("at.atleast_1d(t)", "torch.atleast_1d(x)"),
]


def pyx(stable=False):
    """The module with all call forms, or with those of a stable module."""
    functions = []
    for i, form in enumerate(CALL_FORMS):
        if stable and not form.stable:
            continue
        back = "torch.wrap(result)" if form.type == "at.Tensor" else "result"
        if form.type == PAIR:
            back = "(torch.wrap(interop.get0(result)), torch.wrap(interop.get1(result)))"
        for prefix, start in (("gil", ""), ("nogil", "with nogil:\n        ")):
            if prefix == "gil" or not form.needs_gil:
                functions.append(
                    FUNCTION.format(name=f"{prefix}_{i}", type=form.type, call=form.cython, start=start, back=back)
                )
    return MODULE.format(functions="".join(functions))
