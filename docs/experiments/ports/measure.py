"""Compares a port with the original, or with plain torch where that is not there, and times both."""

import time
from collections.abc import Callable
from statistics import median, quantiles

import torch
from torch import Tensor

from interop.cli import CommandError

from .base import Operation, Port, floats_of, results_of

__all__ = ["agreement", "count_of_cases", "times"]

DIRECTIONS = ("forward", "with backward")


def agreement(port: Port, against: str, dtypes: int, sizes: int) -> dict[str, int]:
    """How many results and gradients are those of `against`, "original" or "reference"; CommandError if one differs."""
    count = {"results": 0, "gradients": 0}
    for operation in port.operations:
        for dtype in operation.dtypes[:dtypes]:
            for size in operation.sizes[:sizes]:
                compare(port, operation, against, size, dtype)
                count["results"] += 1
                count["gradients"] += operation.backward
    return count


def compare(port: Port, operation: Operation, against: str, size: str, dtype: torch.dtype) -> None:
    """CommandError if ours differs from `against` for these inputs, in a result or a gradient."""
    other = getattr(operation, against)
    for function in (called, differentiated) if operation.backward else (called,):
        arguments = operation.inputs(size, dtype)
        try:
            torch.testing.assert_close(
                function(operation.ours, arguments), function(other, arguments), equal_nan=True, check_layout=False
            )
        except AssertionError as error:
            what = "result" if function is called else "gradient"
            raise CommandError(
                f"{port.name}: {operation.name} for {size} of {dtype} has another {what} than the {against}: "
                f"{' '.join(str(error).split())}"
            ) from None


def called(function: Callable[..., object], arguments: tuple) -> tuple[Tensor, ...]:
    """The results of `function`."""
    return results_of(function(*arguments))


def differentiated(function: Callable[..., object], arguments: tuple) -> tuple[Tensor, ...]:
    """The gradients of its arguments, of a sum of its results that has another weight for each of their numbers."""
    return _backward(function, *_with_gradients(function, arguments))


def _with_gradients(function: Callable[..., object], arguments: tuple) -> tuple[tuple, list[Tensor]]:
    """The arguments as leaves that require a gradient, and a gradient for each result that has one."""
    leaves = tuple(
        argument.detach().clone().requires_grad_()
        if isinstance(argument, Tensor) and argument.dtype.is_floating_point
        else argument
        for argument in arguments
    )
    results = [result for result in results_of(function(*leaves)) if result.requires_grad]
    weights = [torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(result.dtype) for result in results]
    return leaves, weights


def _backward(function: Callable[..., object], leaves: tuple, weights: list[Tensor]) -> tuple[Tensor, ...]:
    results = [result for result in results_of(function(*leaves)) if result.requires_grad]
    return torch.autograd.grad(results, floats_of(leaves), weights, allow_unused=True, materialize_grads=True)


def count_of_cases(port: Port, dtypes: int, sizes: int, threads: int) -> int:
    """How many steps `times` has."""
    return sum(
        len(operation.dtypes[:dtypes]) * len(operation.sizes[:sizes]) * (1 + operation.backward) * threads
        for operation in port.operations
    )


def times(
    port: Port, with_original: bool, settings: dict, shown: Callable[[str], None]
) -> dict[str, dict[str, dict[str, dict[str, dict[str, dict[str, list[float]]]]]]]:
    """Microseconds by operation, dtype, size, direction, number of threads, and "ours" or "original".

    Each is the median and the quartiles of the means of `settings["rounds"]` blocks of calls; ours and the original
    take turns.
    """
    before, found = torch.get_num_threads(), {}
    try:
        for operation in port.operations:
            of_operation = found[operation.name] = {}
            for dtype in operation.dtypes[: settings["dtypes"]]:
                of_dtype = of_operation[str(dtype).removeprefix("torch.")] = {}
                for size in operation.sizes[: settings["sizes"]]:
                    of_size = of_dtype[size] = {}
                    for direction in DIRECTIONS[: 1 + operation.backward]:
                        of_size[direction] = {}
                        for threads in settings["threads"]:
                            torch.set_num_threads(threads)
                            ways = _calls(operation, size, dtype, direction, with_original)
                            of_size[direction][str(threads)] = _turns(ways, settings["rounds"], settings["block"])
                            shown(f"{port.name}: {operation.name}, {dtype}, {size}")
    finally:
        torch.set_num_threads(before)
    return found


def _calls(
    operation: Operation, size: str, dtype: torch.dtype, direction: str, with_original: bool
) -> dict[str, Callable[[], object]]:
    """What to time, for each way: functions without arguments."""
    arguments = operation.inputs(size, dtype)
    functions = {"ours": operation.ours, **({"original": operation.original} if with_original else {})}
    if direction == DIRECTIONS[0]:
        return {way: lambda function=function: function(*arguments) for way, function in functions.items()}
    given = {way: _with_gradients(function, arguments) for way, function in functions.items()}
    return {way: lambda way=way: _backward(functions[way], *given[way]) for way in functions}


def _turns(calls: dict[str, Callable[[], object]], rounds: int, block: float) -> dict[str, list[float]]:
    """Microseconds of each call: median and quartiles of `rounds` blocks of about `block` seconds."""
    numbers, means = {}, {way: [] for way in calls}
    for way, call in calls.items():
        call()  # what happens at first calls only
        numbers[way] = max(1, min(10_000, int(block / _block(call, 1))))
    for _ in range(rounds):
        for way, call in calls.items():
            means[way].append(_block(call, numbers[way]) * 1e6)
    result = {}
    for way, values in means.items():
        low, _, high = quantiles(values, method="inclusive") if len(values) > 1 else values * 3
        result[way] = [float(f"{value:.4g}") for value in (median(values), low, high)]
    return result


def _block(call: Callable[[], object], number: int) -> float:
    """Seconds of one call, the mean of `number` calls."""
    started = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - started) / number
