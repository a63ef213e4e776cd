"""torch compiles an operator written in Cython once for all sizes, or the error names the line that prevents this."""

import re

import pytest
import torch
from conftest import PROJECTS
from torch._dynamo.exc import TorchRuntimeError
from torch.library import opcheck

import interop.testing
from interop.testing import check_dynamic_shapes

pytestmark = pytest.mark.long

OPS = torch.ops.interop_test
SYMBOLIC = torch.ops.interop_symbolic
FORWARD = torch.ops.interop_forward
MAPPED = torch.ops.interop_vmap
LINES = (PROJECTS / "library" / "symbolic.pyx").read_text().splitlines()


@pytest.fixture(autouse=True)
def _loaded(operators, gradients, symbolic, forward, mapped):
    """Imports the modules that register the operators."""


def leaf(*sizes, dtype=torch.float32):
    return torch.randn(sizes, dtype=dtype, requires_grad=True)


def matrices(n):
    return leaf(n, n + 1, dtype=torch.double), leaf(n + 1, n + 2, dtype=torch.double)


EXAMPLES = {
    "rows": (SYMBOLIC, lambda n: (leaf(n, n + 1),)),
    "every": (SYMBOLIC, lambda n: (leaf(n + 1, n), leaf(), n, 1, [1.5, 2.0], [True, False], "abc", 2)),
    "stretched": (SYMBOLIC, lambda n: (leaf(n, 3), 2 * n + 1)),
    "zeros": (SYMBOLIC, lambda n: (torch.randn(n), n + 1)),
    "zeros_called": (SYMBOLIC, lambda n: (torch.randn(n),)),
    "mean": (SYMBOLIC, lambda n: (leaf(n),)),
    "scaled_mm": (OPS, lambda n: (leaf(n, n + 1), leaf(n + 1, n + 2), 2.0)),
    "twice_star": (OPS, lambda n: (torch.randn(n),)),
    "twice_implicit": (OPS, lambda n: (leaf(n),)),
    "maybe_types": (OPS, lambda n: (None, None, [n, n + 1])),
    "by_value": (OPS, lambda n: (torch.randn(n),)),
    "pair": (OPS, lambda n: (torch.randn(n, n + 1),)),
    "made_three": (OPS, lambda n: (torch.randn(n, 3),)),
    "weighted": (OPS, lambda n: ([leaf(n), leaf(n)], leaf(n))),
    "folded": (OPS, lambda n: ([leaf(n, 3), leaf(n, 3)], leaf(n, 3), 2.0, None, [0, 1, 5])),
    "halves": (OPS, lambda n: (leaf(n),)),
    "largest": (OPS, lambda n: (leaf(n, n + 1),)),
    "total_of": (OPS, lambda n: (leaf(n, n + 1), [0], True)),
    "maybe": (OPS, lambda n: (leaf(n), True)),
    "exponential": (OPS, lambda n: (leaf(n),)),
    "flagged": (OPS, lambda n: (torch.randn(n), True)),
    "sine": (OPS, lambda n: (leaf(n),)),
    "twice_plus": (OPS, lambda n: (torch.randn(n),)),
    "twice_noexcept": (OPS, lambda n: (torch.randn(n),)),
    "made_pair": (OPS, lambda n: (torch.randn(n, n + 1),)),
    "wave": (FORWARD, lambda n: (leaf(n, dtype=torch.double), leaf(n, dtype=torch.double), 2.0)),
    "product": (FORWARD, lambda n: (torch.randn(n, n + 1), torch.randn(n + 1, n))),
    "product_traced": (MAPPED, lambda n: (*matrices(n), 2.0)),
    "repeated": (MAPPED, lambda n: (torch.randn(n), n + 2)),
}
# What `as_number` computes, in its order.
AS_NUMBERS = [
    lambda x, n: x + n,
    lambda x, n: n + x,
    lambda x, n: x - n,
    lambda x, n: n - x,
    lambda x, n: x * n,
    lambda x, n: n * x,
    lambda x, n: x / n,
    lambda x, n: n / x,
    lambda x, n: x < n,
    lambda x, n: x == n,
    lambda x, n: x * n,
    lambda x, n: torch.where(x > 0, x, n),
    lambda x, n: torch.where(x > 0, 1.0 / n, x),
    lambda x, n: torch.arange(float(n), dtype=x.dtype),
    lambda x, n: torch.arange(1, n, dtype=x.dtype),
    lambda x, n: torch.full((n, 2), float(n)),
    lambda x, n: torch.full((n,), 1.0 / n),
    lambda x, n: x * (1.0 / n),
    lambda x, n: (n / 4.0) * x,
    lambda x, n: x - (n * 0.5 + 1.0 - 2.0) / 2,
    lambda x, n: x / n**0.5,
    lambda x, n: x[1:n],
    lambda x, n: x[n - 2 :],
    lambda x, n: x[: n - 1 : 2],
    lambda x, n: x[n - 3 : n],
    lambda x, n: x[n - 2],
    lambda x, n: x[n - 2],
    lambda x, n: torch.cat([torch.full((2,), float(n)), x[2:]]),
    lambda x, n: torch.zeros(2),
]
LEFT_OUT = {
    "has no fake kernel": {
        *(f"interop_test::{name}" for name in ("product", "twice_with_gil", "gaps")),
        *(f"interop_forward::{name}" for name in ("loop_cube", "reduced_cube", "iterated_cube")),
        *(f"interop_forward::{name}" for name in ("composite_cube", "cube_of_composite", "cube_of_looping_setup")),
    },
    "changes an argument": {
        f"interop_test::{name}" for name in ("add_all_", "add_one_", "add_gaps_", "replace_", "scaled.out")
    },
    "takes or returns values that no graph holds": {
        f"interop_test::{name}"
        for name in ("numbers", "narrow", "scalars", "ints", "text", "types", "total", "tensors", "half_undefined")
    },
    "has a test of its own below": {
        f"interop_symbolic::{name}"
        for name in (
            "divided", "shape", "number_of", "number_in_setup", "number_taken", "number_above_autograd",
            "number_taken_in_setup", "as_number",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_one_compilation(name):
    space, make = EXAMPLES[name]
    check_dynamic_shapes(getattr(space, name), make)


@pytest.mark.parametrize("what", range(len(AS_NUMBERS)))
def test_a_size_as_a_number(what):
    """Compiled once for ten sizes: the graph keeps the symbol."""
    for n in (5, 8):
        x = torch.randn(n)
        torch.testing.assert_close(SYMBOLIC.as_number(x, what), AS_NUMBERS[what](x, n))
    check_dynamic_shapes(lambda x: SYMBOLIC.as_number(x, what), lambda n: (torch.randn(n),), range(5, 15))


def test_one_compilation_of_a_rule_for_vmap():
    """The number of examples may be any number as well."""

    def products(a, b):
        return torch.func.vmap(MAPPED.product_traced, in_dims=(2, None, None))(a, b, 2.0)

    def repeated(x, n):
        return torch.func.vmap(MAPPED.repeated, in_dims=(1, None), out_dims=1)(x, n)

    def examples(n):
        a, b = matrices(n)
        return a.detach().unsqueeze(2).repeat(1, 1, n + 3).requires_grad_(), b

    check_dynamic_shapes(products, examples)
    check_dynamic_shapes(repeated, lambda n: (torch.randn(n, n + 1), n + 2))


def test_no_operator_is_forgotten():
    """Each operator that the test modules define has an example, or a reason why it has none.

    This leaves out the module of rules for vmap, in which operators share their kernels.
    """
    modules = ("operators", "gradients", "symbolic", "forward")
    text = "".join((PROJECTS / "library" / f"{name}.pyx").read_text() for name in modules)
    defined = set(re.findall(r'\bdefine\(\s*b?"(\w+::[\w.]+)"', text))
    assert len(defined) > 40
    tried = {f"{space.name}::{name}" for name, (space, _) in EXAMPLES.items()}
    assert sorted(defined - tried) == sorted(set().union(*LEFT_OUT.values()))


@pytest.mark.parametrize("name", ["rows", "every", "stretched", "zeros", "zeros_called", "mean"])
def test_opcheck(name):
    space, make = EXAMPLES[name]
    assert set(opcheck(getattr(space, name).default, make(5)).values()) == {"SUCCESS"}


@pytest.mark.parametrize(
    ("what", "said"),
    list(enumerate(["size(0)", "numel()", "stride(0)", "sizes()", "strides()", "size(0)", "nbytes()"])),
)
def test_a_size_that_is_made_a_number(what, said):
    """The error has the line of the source and says what to write instead."""
    x = torch.randn(4, 5)
    torch.testing.assert_close(SYMBOLIC.number_of(x, 0), x * 4)
    with pytest.raises(TorchRuntimeError, match=rf"{re.escape(said)} is symbolic here, .*Write sym_") as raised:
        check_dynamic_shapes(lambda x: SYMBOLIC.number_of(x, what), lambda n: (torch.randn(n, n + 1),))
    line = int(re.search(r"symbolic\.pyx:(\d+): ", str(raised.value))[1])
    assert LINES[line - 2].strip() == ("if" if what == 0 else "elif") + f" what == {what}:"


def test_division_is_pythons():
    """Numbers and symbols both round down; c10's own division rounds numbers towards zero and symbols down."""
    x = torch.ones(1)
    for a in range(-7, 8):
        for b in (*range(-4, 0), *range(1, 5)):
            quotient, rest = SYMBOLIC.divided(x, a, b)
            assert (quotient.shape, rest.shape) == ((100 + a // b,), (100 + a % b,))
    with pytest.raises(ValueError, match="division of 5 by zero"):
        SYMBOLIC.divided(x, 5, 0)

    def of_sizes(x):
        return [one.shape for one in SYMBOLIC.divided(x, -x.size(0), x.size(1))]

    compiled = torch.compile(of_sizes, fullgraph=True, dynamic=True, backend="eager")
    for sizes in ((7, 2), (9, 4), (8, 3)):
        assert compiled(torch.ones(sizes)) == of_sizes(torch.ones(sizes))


def test_a_list_of_sizes_as_a_result(symbolic):
    assert symbolic.rank_and_rows(torch.ones(4, 5)) == (2, 4)


def test_a_check_that_could_not_fail_is_refused():
    with pytest.raises(ValueError, match="at least two different sizes"):
        check_dynamic_shapes(torch.sin, lambda n: (torch.ones(n),), (5, 5))
    with pytest.raises(TypeError, match=r"must return a tuple of arguments, got Tensor; .* write \(tensor,\)"):
        check_dynamic_shapes(torch.sin, torch.ones)
    check_dynamic_shapes(lambda x: x / 0 * 0, lambda n: (torch.ones(n),))  # NaNs count as equal


def test_a_number_in_setup_context():
    with pytest.raises(TorchRuntimeError, match=r"symbolic\.pyx:\d+: size\(1\) is symbolic here"):
        check_dynamic_shapes(SYMBOLIC.number_in_setup, lambda n: (leaf(n, n + 1),))


@pytest.mark.parametrize("name", ["number_taken", "number_taken_in_setup", "number_above_autograd"])
def test_a_parameter_that_is_a_number(name):
    with pytest.raises(TorchRuntimeError, match=r"argument 2 'n' is symbolic here, .*declare it at\.SymInt"):
        check_dynamic_shapes(getattr(SYMBOLIC, name), lambda n: (leaf(n), n + 3))


def test_another_size_that_is_five():
    """A constant size that equals the first does not share its symbol."""
    check_dynamic_shapes(torch.sin, lambda n: (torch.randn(n, 5),))


def test_a_number_that_is_asked_for():
    """torch compiles the function for each size; the check detects that and gives torch's reason."""
    with pytest.raises(AssertionError, match=r"recompiled for the arguments of size 8: (.|\n)*expected 5, actual 8"):
        check_dynamic_shapes(lambda x: SYMBOLIC.number_of(x, 7), lambda n: (torch.randn(n, n + 1),))


def test_another_result_is_found_out(monkeypatch):
    calls = iter(range(100))
    monkeypatch.setattr(interop.testing, "_results_and_gradients", lambda function, arguments: [next(calls)])
    with pytest.raises(AssertionError, match="for the arguments of size 5: "):
        check_dynamic_shapes(torch.sin, lambda n: (leaf(n),))


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        (0, RuntimeError, "sizes [2, 3] of Float on cpu"),
        (1, IndexError, "index 1 of text"),
        (2, TypeError, "a type"),
        (3, ValueError, "n is 2, not 0.5"),
        (4, NotImplementedError, "only that"),
        (6, torch.linalg.LinAlgError, "the matrix of sizes [2, 3] is singular"),
        (7, RuntimeError, "index -1 of a device"),
    ],
)
def test_conditions(symbolic, what, kind, message):
    with pytest.raises(kind) as raised:
        symbolic.check_what(torch.ones(2, 3), what)
    assert (raised.type, str(raised.value)) == (kind, message)


def test_a_condition_that_holds(symbolic):
    assert symbolic.check_what(torch.ones(2, 3), 5) == 5
    with pytest.raises(ValueError, match="at most 5"):
        symbolic.check_what(torch.ones(6), 5)


@pytest.mark.parametrize(
    "x", [torch.ones(2, 3, 4, 5)[:, 1:], torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)]
)
def test_what_is_known(symbolic, x):
    for dim in range(-x.ndim, x.ndim):
        assert symbolic.known(x, dim) == {
            "size": x.size(dim),
            "stride": x.stride(dim),
            "numel": x.numel(),
            "storage_offset": x.storage_offset(),
            "nbytes": x.nbytes,
            "is_contiguous": x.is_contiguous(),
            "is_channels_last": x.is_contiguous(memory_format=torch.channels_last),
        }
