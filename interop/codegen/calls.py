"""The ways to call each declaration that Cython is told of: defaults left out, a Scalar as a plain number."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from interop.codegen.surface import Declaration, Parameter
from interop.codegen.types import PARAMETERS

SCALAR = PARAMETERS["const at::Scalar &"]
NUMBERS = ("cbool", "int64_t", "double")

# Overloads that torch's headers have beside the generated ones: at::std(x, 1) is the deviation along dimension 1.
_STD_LIKE = ("std", "var")

# Calls of methods that C++ finds ambiguous, because two of its overloads take the arguments by conversions of the same
# rank. The functions take them.
_AMBIGUOUS = {
    ("count_nonzero", ("int64_t",)),
    ("stft", ("int64_t", "int64_t", "int64_t", "CTensor&", "cbool", "CString")),
    ("stft", ("int64_t", "int64_t", "int64_t", "CTensor&", "cbool")),
}


@dataclass(frozen=True)
class Call:
    """One parameter list with which a declaration can be called."""

    declaration: Declaration
    parameters: tuple[Parameter, ...]
    plain: bool = False  # whether a plain number stands for a Scalar

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(parameter.type for parameter in self.parameters)


def function_calls(declarations: Iterable[Declaration]) -> list[Call]:
    """The calls of functions. Cython alone chooses among them: behind each is a C++ function of its own name."""
    calls = []
    for declaration in declarations:
        calls += _calls(declaration)
        if declaration.name in (*_STD_LIKE, "std_mean", "var_mean") and declaration.wrapper.endswith("_correction"):
            # Without this one Cython would take the 1 of at.std(x, 1) for a truth value.
            along = Parameter("int64_t", "dim", False)
            calls.append(Call(declaration, (declaration.parameters[0], along)))
    return _distinct(calls)


def method_calls(declarations: Iterable[Declaration]) -> list[Call]:
    """The calls of methods, less those that mean one overload to Cython and another to C++.

    C++ chooses again, and of a truth value it sees an int: ``t.sort(True)`` would sort along dimension 1. The functions
    have no such gaps.
    """
    calls = _distinct(call for declaration in declarations for call in _calls(declaration))
    rivals = defaultdict(list)
    for call in calls:
        rivals[call.declaration.name, len(call.parameters)].append(call)
    dropped = {id(loser) for group in rivals.values() for a, b in combinations(group, 2) for loser in _losers(a, b)}
    return [
        call
        for call in calls
        if id(call) not in dropped
        and not _is_bool_for_dim(call)
        and (call.declaration.name, call.types) not in _AMBIGUOUS
    ]


def _losers(a: Call, b: Call) -> Iterator[Call]:
    """Which of two calls must go because they differ in nothing but kinds of numbers."""
    pairs = [(x, y) for x, y in zip(a.types, b.types, strict=True) if x != y]
    if a.declaration is b.declaration or not all(x in NUMBERS and y in NUMBERS for x, y in pairs):
        return
    if a.plain != b.plain:
        yield a if a.plain else b  # at.Scalar(2) still says it
    elif "cbool" in pairs[0]:
        yield a if pairs[0][0] == "cbool" else b


def _is_bool_for_dim(call: Call) -> bool:
    """t.std(True): C++ has a hand-written t.std(int dim), which an int fits better than std(bool unbiased)."""
    return call.declaration.name in _STD_LIKE and call.types == ("cbool",)


def _calls(declaration: Declaration) -> Iterator[Call]:
    parameters = declaration.parameters
    required = max((i + 1 for i, parameter in enumerate(parameters) if not parameter.has_default), default=0)
    for count in range(len(parameters), required - 1, -1):
        shortened = parameters[:count]
        yield Call(declaration, shortened)
        if any(parameter.type == SCALAR for parameter in shortened):
            for number in ("double", "int64_t"):
                plain = (replace(p, type=number) if p.type == SCALAR else p for p in shortened)
                yield Call(declaration, tuple(plain), plain=True)


def _distinct(calls: Iterable[Call]) -> list[Call]:
    """The first of the calls that Cython could not tell apart."""
    return list({(call.declaration.name, call.types): call for call in reversed(list(calls))}.values())[::-1]
