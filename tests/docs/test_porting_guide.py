"""Both sides of each pair in docs/porting-guide.md compile and do the same."""

import re

import pytest
import torch
from conftest import BUILD, write_whole
from doc_blocks import DOCS, of

import interop
from interop.testing import check_dynamic_shapes

PAGE = "docs/porting-guide.md"
SCHEMAS = {  # of the functions that the page does not register itself
    "cells_of": "(Tensor x, float width) -> Tensor",
    "with_groups": "(Tensor x, int dim, int groups) -> Tensor",
    "largest": "(Tensor x) -> (Tensor, int)",
    "before_last": "(Tensor x) -> Tensor",
    "steps": "(Tensor x) -> Tensor",
    "folded": "(Tensor x, Tensor? weight, int? dim, str reduce) -> Tensor",
    "folded_twice": "(Tensor x) -> Tensor",
    "sorted_rows": "(Tensor rowptr, int rows) -> Tensor",
    "lengths": "(Tensor boundary, Tensor px) -> Tensor",
    "flattened": "(Tensor x) -> Tensor",
    "row_sums": "(Tensor x) -> Tensor",
    "extreme": "(Tensor x, int how) -> Tensor",
    "picked": "(Tensor x, Tensor index) -> Tensor",
}
REGISTERED = {"doubled", "quadrupled", "gathered", "parted"}
PYTHON = {"nearest"}
X = torch.arange(24.0).reshape(4, 6).sin()
CALLS = [
    ("cells_of", X, 0.25),
    ("with_groups", X, 1, 3),
    ("with_groups", X, 2, 3),
    ("largest", X),
    *(("before_last", (4 * X).to(dtype)) for dtype in (torch.float32, torch.float16, torch.int64)),
    ("steps", X[:, 0]),
    ("folded", X, None, None, "sum"),
    ("folded", X, X[0], 0, "sum"),
    ("folded", X, X[0], 0, "median"),
    ("folded", X, X[0], 7, "sum"),
    ("folded_twice", X),
    ("sorted_rows", torch.tensor([0, 2, 5]), 5),
    ("sorted_rows", torch.zeros(2, 2), 5),
    ("sorted_rows", torch.zeros(2), 0),
    ("lengths", torch.tensor([[1, 4], [2, 8]]), X),
    ("lengths", torch.tensor([[1, 4], [2, 8]]), X.mT),
    ("flattened", 4 * X.double()),
    ("flattened", (4 * X.double()[:, :3]).mT.expand(2, 3, 4)),
    *(("row_sums", (4 * X).to(dtype)) for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8)),
    ("row_sums", X.to(torch.complex64)),
    *(("extreme", (40 * X).to(dtype), how) for dtype in (torch.float64, torch.int8) for how in (0, 1)),
    ("picked", X[0].double(), torch.tensor([3, 0, 5])),
    ("picked", X[0].double(), torch.tensor([3, 6])),
    ("doubled", X),
    ("doubled", X.to("meta")),
    ("quadrupled", X),
    ("gathered", X, torch.tensor([[1, 0], [3, 3]]), 0),
    ("parted", 4 * X),
    ("nearest", X[0], 0.5),
    ("nearest", X[0], 0.5, 3, True),
    ("nearest", X[0], 0.5, 30),
    ("nearest", None, 0.5),
    ("nearest", [0.5], 0.5),
]
DIFFERENT = [  # as the page says: the call, and the errors of the C++ and of the Cython; None is no error
    (("lengths", torch.tensor([[1, 4], [2, 8]]), X.double()), RuntimeError, TypeError),
    (("lengths", torch.tensor([[1, 4], [2, 8]]), X[0]), RuntimeError, ValueError),
    (("extreme", X.double(), 2), None, ValueError),
    (("nearest", X[0], 0.5, 2.9), TypeError, None),
    (("nearest", X[0], 0.5, 2**70), TypeError, OverflowError),
    (("nearest", X[0], 0.5, 1, []), TypeError, None),
]


def theirs() -> str:
    """All blocks of C++, with code that registers the functions."""
    return "\n".join(
        [
            *of(PAGE, "cpp"),
            "TORCH_LIBRARY_FRAGMENT(porting_theirs, m) {",
            *(f'  m.def("{name}{schema}", {name});' for name, schema in SCHEMAS.items()),
            "}\n",
        ]
    )


def ours() -> str:
    """All blocks of Cython, with code that registers the functions."""
    registered = (
        f'define(b"porting_ours::{name}", b"{schema}")\nimpl(b"porting_ours::{name}", b"default", {name})\n'
        for name, schema in SCHEMAS.items()
    )
    return "\n\n".join([*of(PAGE, "cython"), *registered])


@pytest.fixture(scope="module")
def modules():
    """The two modules. torch's builder compiles the C++, and again only after a change of the text."""
    from torch.utils import cpp_extension

    folder = BUILD / "porting-guide"
    (folder / "theirs").mkdir(parents=True, exist_ok=True)
    write_whole(folder / "theirs.cpp", theirs())
    write_whole(folder / "porting_ours.pyx", ours())
    return {
        "theirs": cpp_extension.load("porting_theirs", [folder / "theirs.cpp"], build_directory=folder / "theirs"),
        "ours": interop.load(folder / "porting_ours.pyx"),
    }


def called(module, side: str, name: str, arguments: tuple):
    """The result of a call, or its error."""
    function = getattr(module if name in PYTHON else getattr(torch.ops, f"porting_{side}"), name)
    torch.manual_seed(7)
    try:
        return function(*arguments)
    except Exception as error:
        return error


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_do_the_same(modules):
    for name, *arguments in CALLS:
        expected, found = (called(modules[side], side, name, arguments) for side in ("theirs", "ours"))
        case = f"{name}: {expected!r} and {found!r}"
        if isinstance(expected, Exception):
            assert type(found) is type(expected), case
        else:
            torch.testing.assert_close(found, expected, rtol=0, atol=0, msg=lambda text, case=case: f"{case}: {text}")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_where_they_differ(modules):
    for (name, *arguments), *kinds in DIFFERENT:
        for side, kind in zip(("theirs", "ours"), kinds, strict=True):
            found = called(modules[side], side, name, arguments)
            assert type(found) is kind if kind else not isinstance(found, Exception), f"{side}: {name}: {found!r}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_gradients_are_the_same(modules):
    index = torch.tensor([[1, 0], [3, 3]])
    found = []
    for side in ("theirs", "ours"):
        x = X.clone().requires_grad_()
        function = getattr(torch.ops, f"porting_{side}").gathered
        result = function(x, index, 0)
        found += torch.autograd.grad(result, x, torch.arange(4.0).reshape(2, 2))
        assert torch.autograd.gradgradcheck(function, (X.double().requires_grad_(), index, 0))
    torch.testing.assert_close(*found, rtol=0, atol=0)
    assert found[0].count_nonzero() == 3
    torch.library.opcheck(torch.ops.porting_ours.gathered.default, (X.clone().requires_grad_(), index, 0))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_result_without_a_gradient(modules):
    for side in ("theirs", "ours"):
        x = X.clone().requires_grad_()
        part, whole = getattr(torch.ops, f"porting_{side}").parted(x)
        assert (part.requires_grad, whole.requires_grad) == (True, False), side
        assert torch.equal(torch.autograd.grad(part, x, X)[0], X), side
    torch.library.opcheck(torch.ops.porting_ours.parted.default, (X.clone().requires_grad_(),))


def test_every_function_is_called():
    assert {name for name, *_ in CALLS} == SCHEMAS.keys() | REGISTERED | PYTHON


def test_the_table_names_the_sections():
    text = (DOCS / "porting-guide.md").read_text(encoding="utf-8")
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^### (.*)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]*)\) \|$", text, re.MULTILINE)) == headings


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_one_compilation_for_all_sizes(modules, name):
    more = {"gathered": lambda n: (torch.randint(n, (2, n + 1)), 0)}.get(name, lambda n: ())
    gradient = name in {"gathered", "parted"}
    check_dynamic_shapes(
        getattr(torch.ops.porting_ours, name), lambda n: (torch.randn(n, n + 1, requires_grad=gradient), *more(n))
    )
