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

# Calls that C++ finds ambiguous, because two of its overloads take the arguments by conversions of the same rank.
_AMBIGUOUS = {
    ("count_nonzero", ("int64_t",)),
    ("stft", ("int64_t", "int64_t", "int64_t", "CTensor&", "cbool", "const char*")),
    ("stft", ("int64_t", "int64_t", "int64_t", "CTensor&", "cbool")),
    ("stft", ("CTensor&", "int64_t", "int64_t", "int64_t", "CTensor&", "cbool")),
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
    calls = [call for call in _distinct(calls) if (call.declaration.name, call.types) not in _AMBIGUOUS]
    return _distinct([*calls, *_with_ints(calls)])


def method_calls(declarations: Iterable[Declaration]) -> list[Call]:
    """The calls of methods, less those that mean one overload to Cython and another to C++.

    C++ chooses again, and of a truth value it sees an int: ``t.sort(True)`` would sort along dimension 1. Of two calls
    that differ in kinds of numbers alone neither is declared, because Cython would take the other one for it. The
    functions have no such gaps.
    """
    calls = _distinct(call for declaration in declarations for call in _calls(declaration))
    dropped = {id(call) for rivals in _rivals(calls) for call in rivals}
    return [
        call
        for call in calls
        if id(call) not in dropped
        and (call.declaration.name, call.types) not in _AMBIGUOUS
        # C++ has a hand-written t.std(int dim), which an int fits better than std(bool unbiased).
        and not (call.declaration.name in _STD_LIKE and call.types == ("cbool",))
    ]


def _with_ints(calls: list[Call]) -> Iterator[Call]:
    """Calls with a C int, where one with an int64_t has a rival with a truth value.

    To Cython an int is nearer to a truth value than to an int64_t.
    """
    for a, b in _rivals(calls):
        for call, rival in ((a, b), (b, a)):
            swapped = [
                replace(mine, type="int") if (mine.type, its.type) == ("int64_t", "cbool") else mine
                for mine, its in zip(call.parameters, rival.parameters, strict=True)
            ]
            if tuple(swapped) != call.parameters:
                yield replace(call, parameters=tuple(swapped))


def _rivals(calls: list[Call]) -> Iterator[tuple[Call, Call]]:
    """Pairs of calls of different overloads that differ in nothing but kinds of numbers."""
    groups = defaultdict(list)
    for call in calls:
        groups[call.declaration.name, len(call.parameters)].append(call)
    for group in groups.values():
        for a, b in combinations(group, 2):
            pairs = [(x, y) for x, y in zip(a.types, b.types, strict=True) if x != y]
            if a.declaration is not b.declaration and all(x in NUMBERS and y in NUMBERS for x, y in pairs):
                yield a, b


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
    """Of calls that Cython could not tell apart, the one that leans least on defaults; none where that decides nothing.

    ``repeat_interleave(t, 2)`` repeats t; it is not the other overload with its optional output_size given.
    """
    alike = defaultdict(list)
    for call in calls:
        alike[call.declaration.name, call.types].append(call)
    distinct = []
    for group in alike.values():
        costs = [_cost(call) for call in group]
        best = [call for call, cost in zip(group, costs, strict=True) if cost == min(costs)]
        if len({call.declaration.schema for call in best}) == 1:
            distinct.append(best[0])
    return distinct


def _cost(call: Call) -> tuple[int, int]:
    optional = sum(parameter.optional for parameter in call.parameters)
    return optional, len(call.declaration.parameters) - len(call.parameters)
