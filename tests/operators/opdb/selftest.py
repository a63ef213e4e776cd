"""``python -m opdb.selftest``: prints, as JSON, the number of failures that each planted fault of a function causes."""

import json
import warnings
from types import SimpleNamespace

import torch
from torch.testing._internal.common_methods_invocations import op_db

from opdb.side_by_side import Comparison


def right(values):
    return torch.atan2(*values)


def swapped(values):
    return torch.atan2(*reversed(values))


def rounded(values):
    return torch.atan2(*values) * (1 + 1e-6)


def another_dtype(values):
    return torch.atan2(*values).to(torch.float16)


def other_strides(values):
    result = torch.atan2(*values)
    return torch.empty_strided(result.shape, [2 * s for s in result.stride()], dtype=result.dtype).copy_(result)


def view_of_an_argument(values):
    result = torch.atan2(*values)
    return result if result.dtype != values[0].dtype or result.shape != values[0].shape else values[0].copy_(result)


def another_exception(values):
    try:
        return torch.gather(*values)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def no_exception(values):
    try:
        return torch.gather(*values)
    except RuntimeError:
        return None


FAULTS = {
    "atan2|atan2|None|tensor,tensor": (swapped, rounded, another_dtype, other_strides, view_of_an_argument),
    "gather|gather|None|tensor,int64_t,tensor": (another_exception, no_exception),
}


def count(key: str, fault) -> int:
    name = key.partition("|")[0]
    functions = {key: fault}
    functions[key.replace("|None|", "|0|")] = lambda values: getattr(torch, name)(*values)
    comparison = Comparison(SimpleNamespace(functions=functions, refused={}))
    run = comparison.operator(next(operator for operator in op_db if operator.name == name))
    return len(run.failures)


def main() -> dict[str, int]:
    warnings.simplefilter("ignore")
    failures = {"right": count("atan2|atan2|None|tensor,tensor", right)}
    return failures | {fault.__name__: count(key, fault) for key, faults in FAULTS.items() for fault in faults}


if __name__ == "__main__":
    print(json.dumps(main()))
