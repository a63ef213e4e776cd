"""Decide how to declare each function: which C++ overloads Cython sees as one function, and which it resolves.

Cython and C++ resolve overloads by different rules, and Cython knows less about the arguments. It converts nothing to
a C++ class, and a tuple, None or a list has no type that C++ declares. So, if possible, all overloads of a name with
the same number of arguments and the same result are one function to Cython. The function has template parameters where
they differ, and C++ resolves the call (``csrc/include/interop/convert.h``).

C++ cannot resolve a call if a bool means something other than a number, because Cython passes True as the int 1.
Cython then chooses among several declared functions. A method of that kind is not declared.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from interop.codegen import types
from interop.codegen.surface import Declaration, Parameter

OPEN = "?"  # an argument of any type, which C++ converts

# Maximum number of positions at which Cython chooses. C++ chooses at others, which would need hundreds of forms.
_MAX_CHOICES = 2


@dataclass(frozen=True)
class Candidate:
    """One C++ signature, cut to the parameters that a call gives."""

    declaration: Declaration
    parameters: tuple[Parameter, ...]

    @property
    def left_out(self) -> int:
        """How many parameters keep their default values."""
        return len(self.declaration.parameters) - len(self.parameters)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(parameter.cpp for parameter in self.parameters)


@dataclass(frozen=True)
class Overload:
    """One function for C++ to resolve, after Cython has chosen."""

    # The C++ signatures that it stands for. If two match equally well, the first wins.
    candidates: tuple[Candidate, ...]
    choices: tuple[tuple[str, ...], ...]  # for each position, the Cython types that are declared there
    # The name of the C++ function that chooses among the candidates; None if there is one signature and nothing to
    # convert, so that it is called directly.
    cpp_name: str | None
    method: bool = False  # whether it is called on a tensor

    @property
    def name(self) -> str:
        """The name in ATen."""
        return self.candidates[0].declaration.name

    @property
    def result(self) -> str:
        """The result's type in C++."""
        return self.candidates[0].declaration.result

    def fixed(self, position: int) -> str | None:
        """The C++ type at `position` if it is the same for all calls; otherwise None."""
        if len(self.choices[position]) == 1 and self.choices[position][0] != OPEN:
            return self.candidates[0].parameters[position].cpp
        return None

    def takes(self, form: Iterable[str]) -> bool:
        """Whether there is a candidate for arguments of these Cython types."""
        return any(
            all(mine == OPEN or p.kind.takes(mine) for mine, p in zip(form, candidate.parameters, strict=True))
            for candidate in self.candidates
        )

    def template_order(self) -> list[int]:
        """The positions whose type is a template parameter in C++, in the order of these parameters.

        Open positions come first, because Cython writes their types explicitly. C++ deduces the others.
        """
        unknown = [i for i in range(len(self.choices)) if not self.fixed(i)]
        return sorted(unknown, key=lambda i: self.choices[i] != (OPEN,))

    def call_forms(self) -> Iterator[tuple[str, ...]]:
        """The call forms: the lists of parameter types that are declared in Cython.

        A call that matches a form of exact types also matches an open form, and Cython does not choose between equal
        matches. So an open form takes one of its tensors as a TensorBase, which costs it a point.
        """
        costly = next((i for i in range(len(self.choices)) if self.fixed(i) == types.TENSOR), None)
        several = any(len(choices) > 1 for choices in self.choices)
        for chosen in product(*self.choices):
            if not self.takes(chosen):
                continue
            if several and any(
                mine == OPEN and len(choices) > 1 for mine, choices in zip(chosen, self.choices, strict=True)
            ):
                yield tuple("CTensorBase&" if i == costly else mine for i, mine in enumerate(chosen))
            else:
                yield chosen


def overloads(declarations: Iterable[Declaration], *, method: bool, members: bool = True) -> list[Overload]:
    """The functions to declare for `declarations`, which are all functions or all methods.

    Without `members`, the C++ tensor has none of the methods as a member.

    For all overloads of a method, Cython writes the C++ name of the first. So all get the same name, and C++ cannot
    tell a bool from a number any more. Overloads that would take a bool for a number are not declared.
    """
    groups: defaultdict[str, defaultdict[int, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for declaration in declarations:
        required = max((i + 1 for i, p in enumerate(declaration.parameters) if not p.has_default), default=0)
        for count in range(len(declaration.parameters), required - 1, -1):
            groups[declaration.name][count].append(Candidate(declaration, declaration.parameters[:count]))
    found = []
    for by_count in groups.values():
        if method:
            kept = [c for c in by_count.values() if not any(map(_has_ambiguous_truth, _positions(c)))]
            of_name = [overload for candidates in kept for overload in _overloads_of(candidates, _method_choices)]
            if not members or any(overload.cpp_name for overload in of_name):
                of_name = [replace(o, method=True, cpp_name=o.name) for o in of_name]
            found += [replace(overload, method=True) for overload in of_name]
        else:
            for candidates in by_count.values():
                found += _overloads_of(candidates, _function_choices)
    return found


def _overloads_of(
    candidates: list[Candidate], choose: Callable[[list[list[Parameter]]], list[tuple[str, ...]]]
) -> Iterator[Overload]:
    """The overloads of one name and number of arguments."""
    by_result = defaultdict(list)
    for candidate in _distinct(candidates):
        by_result[candidate.declaration.result].append(candidate)
    for alike in by_result.values():
        if len(by_result) > 1:
            # Cython needs the type of the result, so Cython itself must tell the overloads apart.
            choices = [_every_type(parameters) for parameters in _positions(alike)]
            cpp_name = alike[0].declaration.wrapper
        else:
            choices = choose(_positions(alike))
            cpp_name = alike[0].declaration.name
        simple = len(alike) == 1 and all(len(c) == 1 and OPEN not in c for c in choices)
        yield Overload(tuple(alike), tuple(choices), None if simple else cpp_name)


def _positions(candidates: list[Candidate]) -> list[list[Parameter]]:
    """The parameters of the candidates, grouped by position."""
    return [list(parameters) for parameters in zip(*(candidate.parameters for candidate in candidates), strict=True)]


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates without duplicates, those with the fewest omitted parameters first.

    Of candidates with the same types, the one with the fewest omitted parameters stays. In a tie none stays, unless
    the schemas are the same too. ``repeat_interleave(t, 2)`` repeats t: 2 is not the optional output_size of the other
    overload.
    """
    alike = defaultdict(list)
    for candidate in sorted(candidates, key=lambda candidate: candidate.left_out):
        alike[candidate.types].append(candidate)
    return [
        same[0]
        for same in alike.values()
        if len(same) == 1
        or same[0].left_out < same[1].left_out
        or same[0].declaration.schema == same[1].declaration.schema
    ]


def _function_choices(positions: list[list[Parameter]]) -> list[tuple[str, ...]]:
    """The Cython types to declare at each position, for candidates with the same result."""
    delicate = [i for i, p in enumerate(positions) if _has_scalar(p) or _has_ambiguous_truth(p)][:_MAX_CHOICES]
    has_tensor = any({p.cpp for p in parameters} == {types.TENSOR} for parameters in positions)
    choices = []
    for i, parameters in enumerate(positions):
        if i not in delicate:
            choices.append(_one_choice(parameters))
        elif len(delicate) == 1 and has_tensor:
            choices.append(("cbool", "int", "int64_t", OPEN))
        else:
            choices.append(_every_type(parameters))
    return choices


def _method_choices(positions: list[list[Parameter]]) -> list[tuple[str, ...]]:
    """As `_function_choices`, but Cython never chooses among methods."""
    return [_one_choice(parameters) for parameters in positions]


def _one_choice(parameters: list[Parameter]) -> tuple[str, ...]:
    alike = len({parameter.cpp for parameter in parameters}) == 1
    return parameters[0].kind.cython_types if alike and not parameters[0].kind.open else (OPEN,)


def _has_scalar(parameters: list[Parameter]) -> bool:
    """Whether a candidate requires a Scalar here. An optional one does not count: True as a factor is 1."""
    return any(
        parameter.cpp in (types.SCALAR, types.STABLE_SCALAR) and not parameter.has_default for parameter in parameters
    )


def _has_ambiguous_truth(parameters: list[Parameter]) -> bool:
    """Whether one candidate takes a bool here and another a number."""
    truths = [types.is_truth_value(parameter.cpp) for parameter in parameters]
    return any(truths) and any(
        parameter.kind.takes_numbers for parameter, truth in zip(parameters, truths, strict=True) if not truth
    )


def _every_type(parameters: list[Parameter]) -> tuple[str, ...]:
    """Every Cython type that a candidate takes here."""
    kinds = [parameter.kind for parameter in parameters]
    listed = list(dict.fromkeys(cython_type for kind in kinds for cython_type in kind.cython_types))
    if "cbool" in listed and "int64_t" in listed and "int" not in listed:
        listed.append("int")  # otherwise Cython would match an int to a bool rather than to an int64_t
    return (*listed, *(["object"] if any(kind.open for kind in kinds) else []))
