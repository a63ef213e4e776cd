"""What is called, by what it does and by the way it is written; and the check that all of them compute the same."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache

import torch
from torch import Tensor
from torch.autograd import forward_ad

from experiments.harness import building
from interop.cli import CommandError

NAME = "custom-ops"
OPERATOR, RECORDED, OPERATOR_BOTH = "operator", "operator, graph recorded", "operator, forward and backward"
FUNCTION, FUNCTION_BOTH = "function", "function, forward and backward"
OPERATOR_JVP, OPERATOR_VMAP = "operator, forward mode", "operator, vmap"
FUNCTION_JVP, FUNCTION_VMAP = "function, forward mode", "function, vmap"
BACKWARD = (OPERATOR_BOTH, FUNCTION_BOTH)
"""Where the gradient is computed as well."""
FORWARD_MODE = (OPERATOR_JVP, FUNCTION_JVP)
"""Where x has a tangent. C++ has no function for it, and torch.library none for an operator in Python."""
VMAP = (OPERATOR_VMAP, FUNCTION_VMAP)
"""Where x is a batch of examples. In C++, only torch's own operators have rules: the header is not installed."""
RULE_IN_PYTHON = "Cython, rule in Python"
"""The operator in Cython, whose rule for vmap is registered from Python."""


def calls() -> dict[tuple[str, str], Callable[[Tensor], Tensor]]:
    """The functions to call, each with one tensor. The compiled modules must have been built."""
    from .ops_python import Exp, ExpEverywhere  # registers operators, which a process can do once

    cython = building.native(NAME, "ops_cython")
    _register_rule(cython.rule_in_python)
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
    everywhere = {"Cython": cython.exp, "Python": ExpEverywhere.apply, "built in": torch.exp}
    result |= {(FUNCTION_JVP, way): function for way, function in everywhere.items()}
    result |= {(FUNCTION_VMAP, way): torch.func.vmap(function) for way, function in everywhere.items()}
    result[OPERATOR_JVP, "Cython"] = torch.ops.ops_cython.exp_with_gradient
    result[OPERATOR_JVP, "built in"] = torch.exp
    for way in ("Cython", "Python"):
        result[OPERATOR_VMAP, way] = torch.func.vmap(operators[way].exp)
    result[OPERATOR_VMAP, RULE_IN_PYTHON] = torch.func.vmap(torch.ops.ops_cython.exp_with_rule_in_python)
    result[OPERATOR_VMAP, "built in"] = torch.func.vmap(torch.exp)
    return result


@cache
def _register_rule(rule: Callable) -> None:
    """Register the rule in Python of an operator in Cython, which a process can do once."""
    torch.library.register_vmap("ops_cython::exp_with_rule_in_python", rule)


_level = ExitStack()
"""The level of forward mode, which is open only for calls that need it: vmap takes longer in one."""


def arguments(what: str) -> tuple[Tensor, Tensor]:
    """What to call with: a tensor, and a gradient of the result, or a tangent. The next call ends a tangent's life."""
    _level.close()
    x, other = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])
    if what in FORWARD_MODE:
        _level.enter_context(forward_ad.dual_level())
        return forward_ad.make_dual(x, other), other
    if what in VMAP:
        return torch.stack((x, other)), other
    return x.requires_grad_(what != OPERATOR), other


def check() -> None:
    """Compare results and derivatives with those of torch.exp, to the bit; CommandError if one differs."""
    for (what, way), function in calls().items():
        x, gradient = arguments(what)
        y = function(x)
        if not torch.equal(y, torch.exp(x)):
            raise CommandError(f"{what}, {way}: the result is {y.tolist()}, expected {torch.exp(x).tolist()}")
        if y.requires_grad != x.requires_grad:
            raise CommandError(f"{what}, {way}: the result has {'a' if y.requires_grad else 'no'} gradient")
        if what in FORWARD_MODE:
            (_, found), (_, wanted) = (forward_ad.unpack_dual(result) for result in (y, torch.exp(x)))
            if found is None or not torch.equal(found, wanted):
                found = found if found is None else found.tolist()
                raise CommandError(f"{what}, {way}: the tangent is {found}, expected {wanted.tolist()}")
        if x.requires_grad:
            (got,), (expected,) = (torch.autograd.grad(f(x), x, gradient) for f in (function, torch.exp))
            if not torch.equal(got, expected):
                raise CommandError(f"{what}, {way}: the gradient is {got.tolist()}, expected {expected.tolist()}")
