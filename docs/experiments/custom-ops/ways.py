"""What is called, by what it does and by the way it is written; and the check that all of them compute the same."""

from collections.abc import Callable

import torch
from torch import Tensor

from experiments.harness import building
from interop.cli import CommandError

NAME = "custom-ops"
OPERATOR, RECORDED, OPERATOR_BOTH = "operator", "operator, graph recorded", "operator, forward and backward"
FUNCTION, FUNCTION_BOTH = "function", "function, forward and backward"
BACKWARD = (OPERATOR_BOTH, FUNCTION_BOTH)
"""Where the gradient is computed as well."""


def calls() -> dict[tuple[str, str], Callable[[Tensor], Tensor]]:
    """The functions to call, each with one tensor. The compiled modules must have been built."""
    from .ops_python import Exp  # registers operators, which a process can do once

    cython = building.native(NAME, "ops_cython")
    torch.ops.load_library(building.native_path(NAME, "ops_cpp"))
    operators = {"Cython": torch.ops.ops_cython, "C++": torch.ops.ops_cpp, "Python": torch.ops.ops_python}
    functions = {"Cython": cython.exp, "C++": building.native(NAME, "function_pybind11").exp, "Python": Exp.apply}
    result = {(OPERATOR, way): namespace.exp for way, namespace in operators.items()}
    result[OPERATOR, "Cython, not registered"] = cython.exp_unregistered
    result[OPERATOR, "built in"] = torch.exp
    for what in (RECORDED, OPERATOR_BOTH):
        result |= {(what, way): namespace.exp_with_gradient for way, namespace in operators.items()}
    for what in (FUNCTION, FUNCTION_BOTH):
        result |= {(what, way): function for way, function in functions.items()}
        result[what, "built in"] = torch.exp
    return result


def arguments(what: str) -> tuple[Tensor, Tensor]:
    """What to call with: a tensor, and a gradient of the result."""
    return torch.tensor([0.5, -1.0, 2.0], requires_grad=what != OPERATOR), torch.tensor([1.0, 2.0, 3.0])


def check() -> None:
    """Compare results and gradients with those of torch.exp, to the bit; CommandError if one differs."""
    for (what, way), function in calls().items():
        x, gradient = arguments(what)
        y = function(x)
        if not torch.equal(y, torch.exp(x)):
            raise CommandError(f"{what}, {way}: the result is {y.tolist()}, expected {torch.exp(x).tolist()}")
        if y.requires_grad != x.requires_grad:
            raise CommandError(f"{what}, {way}: the result has {'a' if y.requires_grad else 'no'} gradient")
        if x.requires_grad:
            (got,), (expected,) = (torch.autograd.grad(f(x), x, gradient) for f in (function, torch.exp))
            if not torch.equal(got, expected):
                raise CommandError(f"{what}, {way}: the gradient is {got.tolist()}, expected {expected.tolist()}")
