"""``python -m operators.run [all | 0.05 | NAME ...]``: compares all operators, or some, and reports.

What is compiled, and the report, go to build/tests/operators.
"""

import contextlib
import faulthandler
import functools
import json
import multiprocessing
import os
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from conftest import BUILD, fingerprint
from torch.testing._internal.common_methods_invocations import op_db

from operators.capture import Call, Captured, capture
from operators.compare import UNINITIALISED, UNSTEADY, difference, duplicate, leaves
from operators.modules import Modules
from operators.report import show
from operators.shapes import NotDeclaredError, Shape, spellings, surface

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)
FOLDER = BUILD / "operators"
SEED = 0


@dataclass
class Tally:
    """What became of the samples of one operator."""

    passed: int = 0
    failed: int = 0
    skipped: Counter = field(default_factory=Counter)
    calls: Counter = field(default_factory=Counter)  # by how they are written
    direct: int = 0  # samples that are one call of ATen and nothing else


@dataclass
class Failure:
    operator: str
    dtype: str
    call: str
    problem: str
    arguments: str


@dataclass
class Run:
    """Everything that is known after a run."""

    operators: dict[str, Tally] = field(default_factory=dict)
    errors: dict[str, Tally] = field(default_factory=dict)
    messages: Counter = field(default_factory=Counter)
    compared: Counter = field(default_factory=Counter)
    aten: set[str] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)

    def __iadd__(self, other: "Run") -> "Run":
        self.operators |= other.operators
        self.errors |= other.errors
        self.messages += other.messages
        self.compared += other.compared
        self.aten |= other.aten
        self.failures += other.failures
        return self


def operator_name(operator: Any) -> str:
    return f"{operator.name}.{operator.variant_test_name}" if operator.variant_test_name else operator.name


def samples(operator: Any) -> Iterator[tuple[str, functools.partial]]:
    """The dtype of each sample, and a function that calls the operator with it."""
    for dtype in DTYPES:
        if dtype in operator.supported_dtypes("cpu"):
            torch.manual_seed(SEED)
            for sample in operator.sample_inputs("cpu", dtype, requires_grad=False):
                yield str(dtype).removeprefix("torch."), _bind(operator, sample)


def error_samples(operator: Any) -> Iterator[functools.partial]:
    """For each sample that is an error, a function that calls the operator with it."""
    if operator.error_inputs_func:
        torch.manual_seed(SEED)
        for sample in operator.error_inputs("cpu"):
            yield _bind(operator, sample.sample_input)


def _bind(operator: Any, sample: Any) -> functools.partial:
    return functools.partial(operator, sample.input, *sample.args, **sample.kwargs)


def seeded(function: Callable[[], Any]) -> Any:
    torch.default_generator.manual_seed(SEED)  # there are no devices for which to seed more
    return function()


def collect(operators: list[Any]) -> dict[str, Shape]:
    """The shapes of all calls that the samples make."""
    shapes: dict[str, Shape] = {}
    for found in in_processes(_collect, operators):
        shapes |= found
    return shapes


def _collect(operator: Any) -> dict[str, Shape]:
    shapes = {}
    for function in [*(function for _, function in samples(operator)), *error_samples(operator)]:
        for call in seeded(lambda function=function: capture(function)).calls:
            with contextlib.suppress(NotDeclaredError):  # the comparison counts these
                shapes |= {shape.key: shape for shape, _ in spellings(call)}
    return shapes


def in_processes(function: Callable[[Any], Any], operators: list[Any]) -> Iterator[Any]:
    """`function` of each operator, in that order, by as many processes as there are processors."""
    global _task
    _task = function, operators
    # What is compiled and loaded, and the operators, which cannot be pickled, the processes have from this one.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=_quiet) as pool:
        yield from pool.map(_one, range(len(operators)), chunksize=4)


def _quiet() -> None:
    """Sends what C++ prints, warnings that samples are meant to cause, to a file; but not the trace of a crash."""
    faulthandler.enable(os.dup(2))
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.dup2(os.open(FOLDER / "stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)


_task: tuple[Callable[[Any], Any], list[Any]]


def _one(i: int) -> Any:
    function, operators = _task
    return function(operators[i])


def _remembered(path: Path, key: Any, find: Callable[[], dict[str, Shape]]) -> dict[str, Shape]:
    """What `find` finds, from the file `path` if that was written for the same `key`."""
    try:
        record = json.loads(path.read_text())
        if record["key"] == key:
            rows = record["shapes"]
            return {row[0]: Shape(row[1], tuple(row[2]), tuple(row[3]), row[4], row[5]) for row in rows}
    except (OSError, ValueError, LookupError):
        pass
    shapes = find()
    rows = [(k, s.name, s.kinds, s.returns, s.receiver, s.overload) for k, s in shapes.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"key": key, "shapes": rows}))
    return shapes


class Comparison:
    """Calls the compiled functions beside torch's, and notes what comes out."""

    def __init__(self, modules: Modules):
        self.modules = modules
        self.run = Run()
        self.where = ("", "")
        self.shapes: dict[str, Shape] = {}  # of the calls of the operator at hand, where it is one call

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
                self.shapes |= {shape.key: shape for shape, _ in spellings(captured.calls[0])}
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
        """What torch's argument parser refuses we must refuse in the conversion of arguments, with a TypeError as well.

        No call of ATen says which of our functions is meant, so each is tried that takes as many arguments.
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
        """Calls `function`, and beside each of its calls of ATen ours."""
        problems: list[str] = []
        captured = seeded(lambda: capture(function, lambda call: self._compare(call, tally, problems)))
        undeclared = captured.calls and captured.calls[-1].error
        return (undeclared if isinstance(undeclared, NotDeclaredError) else captured), problems

    def _compare(self, call: Call, tally: Tally, problems: list[str]) -> Any:
        """Makes a call as torch does, and compares each of our ways to write it with that."""
        written = list(spellings(call))
        # The copies are made before torch may change its arguments.
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
            if type(theirs.error) is not type(ours.error):
                return f"{ours}, not {theirs}"
            same = _first_line(theirs.error) == _first_line(ours.error)
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
    """Whether a Python function did nothing else than to call ATen once."""
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


def choose(chosen: list[str], seed: int) -> tuple[str, list[Any]]:
    """A name for the choice, and the operators: all, a random fraction of them, or those with the given names."""
    if chosen == ["all"]:
        return "all", list(op_db)
    if len(chosen) == 1 and chosen[0].startswith("0."):
        operators = random.Random(seed).sample(op_db, max(1, round(float(chosen[0]) * len(op_db))))
        print(f"{len(operators)} operators of {len(op_db)}, chosen with seed {seed}", flush=True)
        return "some", operators
    operators = [operator for operator in op_db if operator.name in chosen]
    if missing := set(chosen) - {operator.name for operator in operators}:
        raise SystemExit(f"torch's database has no operator {', '.join(sorted(missing))}")
    return "named", operators


def main(chosen: list[str]) -> bool:
    warnings.simplefilter("ignore")  # samples warn of what they are meant to try
    torch.set_num_threads(1)  # the order of summation must not depend on how busy the machine is
    started = time.monotonic()
    built_from = fingerprint()
    found_by = fingerprint(Path(__file__).parent)
    # Another choice whenever anything changed, and the same one, built already, as long as nothing does.
    seed = int(found_by[:8], 16)
    kind, operators = choose(chosen, seed)
    folder = FOLDER / kind
    surface()  # once, and not in each process
    shapes = _remembered(folder / "shapes.json", [found_by, chosen], lambda: collect(operators))
    collected = time.monotonic()
    print(f"{len(shapes)} shapes of calls, found in {collected - started:.0f} s", flush=True)
    modules = Modules(folder, shapes.values(), built_from, lambda line: print(line, flush=True))
    built = time.monotonic()
    run = Run()
    for part in in_processes(Comparison(modules).operator, operators):
        run += part
    seconds = {
        "collecting": round(collected - started, 1),
        "building": round(built - collected, 1),
        "comparing": round(time.monotonic() - built, 1),
    }
    report = summary(run, operators, modules, seed if kind == "some" else None, seconds)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    show(report)
    return not report["failures"]


def summary(run: Run, operators: list[Any], modules: Modules, seed: int | None, seconds: dict[str, float]) -> dict:
    """The report: what is written as JSON and shown as tables."""
    tallies = run.operators

    def names(wanted: Callable[[Tally], bool]) -> set[str]:
        return {o.name for o in operators if wanted(tallies[operator_name(o)])}

    def samples_of(all_tallies: dict[str, Tally]) -> dict:
        skipped: Counter = Counter()
        for tally in all_tallies.values():
            skipped += tally.skipped
        passed = sum(tally.passed for tally in all_tallies.values())
        failed = sum(tally.failed for tally in all_tallies.values())
        return {
            "ran": passed + failed,
            "passed": passed,
            "failed": failed,
            "skipped": sum(skipped.values()),
            "reasons": dict(skipped.most_common()),
        }

    direct = names(lambda tally: tally.direct)
    composite = names(lambda tally: tally.passed and not tally.direct) - direct
    idle = names(lambda tally: not tally.passed and not tally.failed) - direct - composite
    calls: Counter = Counter()
    for tally in [*tallies.values(), *run.errors.values()]:
        calls += tally.calls
    return {
        "torch": torch.__version__,
        "seed": seed,
        "operators": {
            "entries in op_db": len(op_db),
            "entries tried": len(operators),
            "distinct names": len({o.name for o in operators}),
            "one call of ATen": len(direct),
            "Python code over several calls of ATen": len(composite),
            "failed": len(names(lambda tally: tally.failed)),
            "did not run": {
                name: dict(sum((tallies[operator_name(o)].skipped for o in operators if o.name == name), Counter()))
                for name in sorted(idle)
            },
        },
        "overloads of ATen": len(run.aten),
        "shapes": len(modules.functions) + len(modules.refused),
        "shapes that do not compile": modules.refused,
        "calls compared": dict(calls),
        "results compared": dict(run.compared),
        "samples": samples_of(tallies),
        "error samples": samples_of(run.errors) | {"first lines of messages": dict(run.messages)},
        "seconds": seconds,
        "failures": [vars(failure) for failure in run.failures],
    }


if __name__ == "__main__":
    try:
        sys.exit(0 if main(sys.argv[1:] or ["all"]) else 1)
    except Exception:
        traceback.print_exc()
        sys.exit(2)
