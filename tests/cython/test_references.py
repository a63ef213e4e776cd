"""The result of a C++ function that returns a reference and can raise is an operand like any other value."""

import pytest
import torch

import interop

SOURCE = """
cimport ATen as at
cimport torch
from interop cimport AT_ALL_TYPES, any_t, instantiate_part, scalar_t
from libc.stdint cimport int64_t
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef at.Tensor mixed(const optional[vector[at.Tensor]]& v, optional[vector[int64_t]]& n) except * nogil:
    n.value()[0] = 5
    n.value()[0] += n.value()[1]
    if not 7 < n.value().at(0) < n.value()[2]:
        return at.Tensor()
    return v.value()[0] * n.value()[0] + v.value().at(1)[0] - (-v.value().at(0))

def numbers(torch.Tensor x not None, torch.Tensor y not None):
    cdef vector[at.Tensor] v
    v.push_back(x.cdata)
    v.push_back(y.cdata)
    cdef optional[vector[int64_t]] n = optional[vector[int64_t]](vector[int64_t](3, 3))
    n.value()[2] = 9
    return torch.wrap(mixed(optional[vector[at.Tensor]](v), n)), n.value()[0]

def symbols(int64_t i):
    cdef optional[at.SymInt] n = optional[at.SymInt](at.SymInt(i))
    cdef vector[at.SymInt] v = vector[at.SymInt](1, at.SymInt(3))
    return -n.value() < v.at(0), n.value() != v.at(0), (n.value() * v.at(0) - 1 + n.value()).guard_int(b"f", 1)

def texts():
    cdef optional[vector[string]] s = optional[vector[string]](vector[string](1, b"a"))
    return s.value()[0] == b"a", s.value()[0]

cdef struct Arguments:
    const void* a
    void* r
    int64_t n

cdef void running(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    cdef Arguments* t = <Arguments*> of
    cdef const scalar_t* a = <const scalar_t*> t.a
    cdef scalar_t* r = <scalar_t*> t.r
    cdef optional[scalar_t] best
    cdef int64_t i
    for i in range(t.n):
        if not best.has_value() or a[i] > best.value() or not best.value() >= a[i]:
            best = a[i]
        r[i] = best.value()

def maxima(torch.Tensor x not None):
    cdef at.Tensor r = at.empty_like(x.cdata)
    cdef Arguments t
    t.a, t.r, t.n = x.cdata.const_data_ptr(), r.mutable_data_ptr(), r.numel()
    at.parallel_for(0, 1, 1, instantiate_part(r.scalar_type(), b"f", running, AT_ALL_TYPES, at.kHalf, at.kBFloat16), &t)
    return torch.wrap(r)

def empty():
    cdef optional[vector[int64_t]] n
    return n.value()[0]
"""


@pytest.mark.long
@pytest.mark.usefixtures("jit_cache")
def test_operands():
    module = interop.load_inline(SOURCE, name="references")
    x, y = torch.randn(3, 2), torch.randn(4, 2)
    mixed, n = module.numbers(x, y)
    assert n == 8
    torch.testing.assert_close(mixed, x * 8 + y[0] - (-x))
    assert module.symbols(5) == (True, True, 5 * 3 - 1 + 5)
    assert module.texts() == (True, b"a")
    for dtype in (torch.uint8, torch.int64, torch.float32, torch.float16, torch.bfloat16):
        x = torch.randint(0, 99, (20,)).to(dtype)
        assert torch.equal(module.maxima(x), x.float().cummax(0).values.to(dtype))
    with pytest.raises(RuntimeError, match="optional"):
        module.empty()
