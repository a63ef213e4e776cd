"""Calls the compiled functions alongside torch's, and compares the outcomes."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from opdb import STABLE
from opdb.capture import Call, Captured, capture
from opdb.compare import UNINITIALISED, UNSTEADY, difference, duplicate, leaves
from opdb.modules import Modules
from opdb.results import Failure, Run, Tally
from opdb.samples import error_samples, operator_name, samples, seeded
from opdb.shapes import NotDeclaredError, Shape, call_forms


class Comparison:
    """Calls the compiled functions alongside torch's, and records how they compare."""

    def __init__(self, modules: Modules):
        self.modules = modules
        self.run = Run()
        self.where = ("", "")
        self.shapes: dict[str, Shape] = {}  # of samples of the current operator that are one direct call

    def operator(self, operator: Any) -> Run:
        """Compares all samples of one operator."""
        self.run = Run()
        name = operator_name(operator)
        tally = self.run.operators[name] = Tally()
        self.shapes = {}
        for dtype, function in samples(operator):
            self.where = (name, dtype)
            self._sample(function, tally)
        tally = self.run.errors[name] = Tally()
        self.where = (name, "error")
        for function in error_samples(operator):
            self._error_sample(function, tally)
        return self.run

    def _sample(self, function: Callable[[], Any], tally: Tally) -> None:
        captured, problems = self._mirrored(function, tally)
        if isinstance(captured, NotDeclaredError):
            tally.skipped[str(captured)] += 1
        elif captured.calls:
            tally.failed += bool(problems)
            tally.passed += not problems
            if not problems and _is_direct(captured):
                tally.direct += 1
                self.shapes |= {shape.key: shape for shape, _ in call_forms(captured.calls[0])}
        elif captured.error:
            tally.skipped[f"torch refuses it here: {_first_line(captured.error)[:60]}"] += 1
        else:
            tally.skipped["answered by Python without ATen"] += 1

    def _error_sample(self, function: functools.partial, tally: Tally) -> None:
        captured, problems = self._mirrored(function, tally)
        if isinstance(captured, NotDeclaredError):
            tally.skipped[str(captured)] += 1
        elif captured.error is None:
            tally.skipped["no error without autograd"] += 1
        elif not captured.calls or captured.calls[-1].error is not captured.error:
            if isinstance(captured.error, TypeError):
                self._wrong_types(function, tally)
            else:
                tally.skipped["checked by Python code before ATen"] += 1
        else:
            tally.failed += bool(problems)
            tally.passed += not problems

    def _wrong_types(self, function: functools.partial, tally: Tally) -> None:
        """Our conversion of arguments must raise TypeError for arguments that torch's argument parser rejects.

        No ATen call says which of our functions is meant, so the check tries each that takes as many arguments.
        """
        meant = [shape for shape in self.shapes.values() if len(shape.kinds) == len(function.args)]
        meant = [shape for shape in meant if not {"None", "options"} & set(shape.kinds)]
        if function.keywords or not meant:
            tally.skipped["Python argument parser, of a call of another form"] += 1
            return
        problems = []
        for shape in meant:
            ours = _outcome(lambda: self._function(shape)(list(function.args)))  # noqa: B023 - called at once
            if not isinstance(ours, _Raised) or not isinstance(ours.error, TypeError):
                problems.append(f"{ours}, not a TypeError")
                self.run.failures.append(Failure(*self.where, shape.key, problems[-1], _describe(function.args)))
        tally.failed += bool(problems)
        tally.passed += not problems
        tally.calls["conversion of wrong types"] += len(meant)

    def _mirrored(self, function: Callable[[], Any], tally: Tally) -> tuple[Captured | NotDeclaredError, list[str]]:
        """Calls `function`, and our function alongside each of its ATen calls."""
        problems: list[str] = []
        captured = seeded(lambda: capture(function, lambda call: self._compare(call, tally, problems)))
        undeclared = captured.calls and captured.calls[-1].error
        return (undeclared if isinstance(undeclared, NotDeclaredError) else captured), problems

    def _compare(self, call: Call, tally: Tally, problems: list[str]) -> Any:
        """Makes a call as torch does, and compares each of our forms of the call with it."""
        written = list(call_forms(call))
        # Make the copies before torch can change its arguments.
        mutable = _is_mutable(call)
        given = [duplicate(values) if mutable else values for _, values in written]
        generators = {g: g.get_state() for g in call.kwargs.values() if isinstance(g, torch.Generator)}
        theirs = _outcome(lambda: seeded(call.run))
        for (shape, values), copies in zip(written, given, strict=True):
            for generator, state in generators.items():
                generator.set_state(state)
            ours = _outcome(lambda: seeded(lambda: self._function(shape)(copies)))  # noqa: B023 - called at once
            problem = self._between(theirs, ours, shape, values, copies, mutable)
            tally.calls["method" if shape.receiver is not None else "function"] += 1
            self.run.aten.add(shape.overload)
            if problem:
                problems.append(problem)
                self.run.failures.append(Failure(*self.where, shape.key, problem, _describe(values)))
        if isinstance(theirs, _Raised):
            raise theirs.error
        return theirs

    def _function(self, shape: Shape) -> Callable:
        if shape.key in self.modules.refused:
            raise NotCompiledError(self.modules.refused[shape.key])
        return self.modules.functions[shape.key]

    def _between(self, theirs, ours, shape: Shape, values: list, copies: list, mutable: bool) -> str | None:
        if isinstance(ours, _Raised) and isinstance(ours.error, NotCompiledError):
            return f"does not compile: {ours.error}"
        if isinstance(theirs, _Raised) != isinstance(ours, _Raised):
            return f"{ours}, not {theirs}" if isinstance(theirs, _Raised) else f"{ours}"
        if isinstance(theirs, _Raised):
            same = _first_line(theirs.error) == _first_line(ours.error)
            if STABLE and same and type(ours.error) is RuntimeError is not type(theirs.error):
                # torch's C interface passes on only the text of an error, and only some texts identify its class.
                self.run.messages["the same, of another class"] += 1
                return None
            if type(theirs.error) is not type(ours.error):
                return f"{ours}, not {theirs}"
            self.run.messages["the same" if same else "another"] += 1
            return None
        numbers = shape.name not in UNINITIALISED
        found = None
        if shape.returns:
            exact = shape.name not in UNSTEADY
            found = difference(theirs, ours, (values, copies), numbers, exact)
            self.run.compared["to the last bit" if numbers and exact else "closely" if numbers else "no values"] += 1
        if mutable and not found:
            found = difference(values, copies, values=numbers)
            found = found and f"of the arguments afterwards, {found}"
        return found


class NotCompiledError(Exception):
    """There is no compiled function for a shape; the message is the compiler's."""


@dataclass
class _Raised:
    error: Exception

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {_first_line(self.error)}"


def _outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        return _Raised(error)


def _is_direct(captured: Captured) -> bool:
    """Whether a Python function did nothing but call ATen once."""
    if len(captured.calls) != 1 or captured.error:
        return False
    results = list(leaves(captured.result)), list(leaves(captured.calls[0].result))
    return len(results[0]) == len(results[1]) and all(
        a is b or (not isinstance(a, torch.Tensor) and a == b) for a, b in zip(*results, strict=True)
    )


def _is_mutable(call: Call) -> bool:
    return any(argument.alias_info and argument.alias_info.is_write for argument in call.overload._schema.arguments)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _describe(values: list[Any]) -> str:
    def one(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return f"[{', '.join(map(one, value))}]" if isinstance(value, (list, tuple)) else repr(value)

    return ", ".join(map(one, values))
