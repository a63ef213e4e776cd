"""What kernels take, and hand on to ATen, in modules for one release of torch and for many."""

import operator

import pytest
import torch
from conftest import needs_stable

import interop

pytestmark = pytest.mark.extended

SIGNED = {"signed char": 8, "short": 16, "int": 32, "long": 64, "long long": 64}
UNSIGNED = {"unsigned char": 8, "unsigned short": 16, "unsigned int": 32, "size_t": 64}
LIMITS = {kind: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for kind, bits in SIGNED.items()}
LIMITS |= {kind: (0, 2**bits - 1) for kind, bits in UNSIGNED.items()}

HANDED_ON = """
cimport ATen as at
from libc.stdint cimport int64_t
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector
from torch.library cimport define, impl

cdef at.Tensor summed(const at.Tensor& x, const optional[vector[int64_t]]& dims, bint keepdim) except * nogil:
    return at.sum(x, dims, keepdim)

cdef at.Tensor scaled(const at.Tensor& x, const optional[vector[double]]& factors) except * nogil:
    return at.upsample_nearest2d(x, optional[vector[int64_t]](), factors)

cdef at.Tensor found(const at.Tensor& x, const at.Tensor& y, const optional[string]& side) except * nogil:
    return at.searchsorted(x, y, False, False, side)

define("NAME::summed", "(Tensor x, int[]? dims, bool keepdim) -> Tensor")
impl("NAME::summed", "CPU", summed)
define("NAME::scaled", "(Tensor x, float[]? factors) -> Tensor")
impl("NAME::scaled", "CPU", scaled)
define("NAME::found", "(Tensor x, Tensor y, str? side) -> Tensor")
impl("NAME::found", "CPU", found)
"""

OF_ONE_RELEASE = """
cimport ATen as at
from libcpp.optional cimport optional
from torch.library cimport define, impl

cdef at.Tensor drawn(const at.Tensor& p, const optional[at.Generator]& generator) except * nogil:
    return at.bernoulli(p, generator)

cdef at.Tensor made(const at.Tensor& x, optional[at.ScalarType] dtype, optional[at.Layout] layout) except * nogil:
    return at.zeros((2,), at.TensorOptions().dtype(dtype).layout(layout))

define("handed_on::drawn", "(Tensor p, Generator? generator=None) -> Tensor")
impl("handed_on::drawn", "CPU", drawn)
define("handed_on::made", "(Tensor x, ScalarType? dtype, Layout? layout) -> Tensor")
impl("handed_on::made", "CPU", made)
"""

SIGNS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.fixture(params=[None, pytest.param("2.11", marks=needs_stable)], ids=["one release", "many releases"])
def load(jit_cache, request):
    """Loads a source, in which NAME is the module's name, and returns the name and the module."""

    def load_as(source, name):
        name += "_of_many" if request.param else "_of_one"
        return name, interop.load_inline(source.replace("NAME", name), name=name, stable=request.param)

    return load_as


def test_an_integer_of_every_type(load):
    """A number that does not fit raises. It is never cut off."""
    source = "cimport ATen as at\nfrom torch.library cimport define, impl\n"
    for i, kind in enumerate(LIMITS):
        source += (
            f"cdef {kind} k{i}(const at.Tensor& x, {kind} n) except? 77 nogil:\n    return n\n"
            f"define('NAME::k{i}', '(Tensor x, int n) -> int')\nimpl('NAME::k{i}', 'CPU', k{i})\n"
        )
    name, _ = load(source, "integers")
    x = torch.ones(1)
    for i, (low, high) in enumerate(LIMITS.values()):
        kernel = getattr(getattr(torch.ops, name), f"k{i}")
        for n in {low, high, low - 1, high + 1, -1, 300, 70_000, 2**40}:
            if low <= n <= min(high, 2**63 - 1):
                assert kernel(x, n) == n
            elif -(2**63) <= n < 2**63:  # torch raises for other numbers
                with pytest.raises(ValueError, match=f"the number {n} does not fit into the kernel's C type"):
                    kernel(x, n)


def test_a_number_of_every_type_is_a_scalar(load):
    kinds = [*LIMITS, "uint32_t", "int64_t", "float", "double", "bint"]
    kinds.remove("unsigned short")  # Cython finds it as close to int as to bool, and the hint says to cast it
    source = "cimport ATen as at\ncimport torch\nfrom libc.stdint cimport int64_t, uint32_t\n"
    for i, kind in enumerate(kinds):
        source += (
            f"def f{i}(torch.Tensor x not None, {kind} n):\n    return torch.wrap(at.mul(x.cdata, n)), "
            "torch.wrap(at.full((2,), n)), torch.wrap(at.clamp(x.cdata, n, n))\n"
        )
    _, module = load(source, "numbers")
    x = torch.arange(3)
    for i, kind in enumerate(kinds):
        n = {"float": 2.0, "double": 2.0, "bint": True}.get(kind, 2)
        expected = torch.mul(x, n), torch.full((2,), n), torch.clamp(x, n, n)
        for ours, theirs in zip(getattr(module, f"f{i}")(x, n), expected, strict=True):
            assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist()), kind


def test_optional_arguments_are_handed_on(load):
    name, _ = load(HANDED_ON, "handed_on")
    operators, x, image = getattr(torch.ops, name), torch.randn(3, 4, 5), torch.randn(1, 1, 4, 4)
    for dims in (None, [], [0], [0, 2], [-1]):
        for keepdim in (True, False):
            torch.testing.assert_close(operators.summed(x, dims, keepdim), torch.sum(x, dims, keepdim=keepdim))
    scaled = torch.nn.functional.interpolate(image, scale_factor=(2.0, 3.0))
    assert operators.scaled(image, [2.0, 3.0]).equal(scaled)
    with pytest.raises(RuntimeError):  # as in torch, which needs a size or factors
        operators.scaled(image, None)
    numbers, sought = torch.arange(5.0), torch.tensor([1.0, 2.5])
    for side in (None, "left", "right"):
        assert operators.found(numbers, sought, side).equal(torch.searchsorted(numbers, sought, side=side))


def test_optional_arguments_that_stable_modules_lack(jit_cache):
    interop.load_inline(OF_ONE_RELEASE, name="handed_on")
    operators, p = torch.ops.handed_on, torch.full((20,), 0.5)
    drawn = operators.drawn(p, torch.Generator().manual_seed(3))
    assert drawn.equal(torch.bernoulli(p, generator=torch.Generator().manual_seed(3)))
    torch.manual_seed(5)
    drawn = operators.drawn(p)
    torch.manual_seed(5)
    assert drawn.equal(torch.bernoulli(p))
    for dtype in (None, torch.int8):
        for layout in (None, torch.strided, torch.sparse_coo):
            made, expected = operators.made(p, dtype, layout), torch.zeros(2, dtype=dtype, layout=layout)
            assert (made.dtype, made.layout) == (expected.dtype, expected.layout)


def test_a_scalar_is_an_operand(load):
    source = "cimport ATen as at\nfrom torch cimport Tensor, wrap\n"
    for i, sign in enumerate(SIGNS):
        source += (
            f"def named{i}(Tensor x, double y):\n    c = at.Scalar(y)\n    return wrap(x.cdata {sign} c)\n"
            f"def made{i}(Tensor x, long y):\n    cdef at.Tensor a = x.cdata\n    return wrap(a {sign} at.Scalar(y))\n"
        )
    _, module = load(source, "scalars")
    for x in (torch.randn(5), torch.arange(1, 6)):
        for i, apply in enumerate(SIGNS.values()):
            torch.testing.assert_close(getattr(module, f"named{i}")(x, 2.5), apply(x, 2.5))
            torch.testing.assert_close(getattr(module, f"made{i}")(x, 2), apply(x, 2))
