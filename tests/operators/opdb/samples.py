"""The operators of torch's own database, and the calls that its samples describe."""

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)
SEED = 0


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
    """For each sample that must raise, a function that calls the operator with it."""
    if operator.error_inputs_func:
        torch.manual_seed(SEED)
        for sample in operator.error_inputs("cpu"):
            yield _bind(operator, sample.sample_input)


def _bind(operator: Any, sample: Any) -> functools.partial:
    return functools.partial(operator, sample.input, *sample.args, **sample.kwargs)


def seeded(function: Callable[[], Any]) -> Any:
    torch.default_generator.manual_seed(SEED)  # there are no other devices to seed
    return function()
