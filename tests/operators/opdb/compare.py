"""Whether two results are equal to the last bit, with the same dtype, strides and layout, and views of the same."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch

# These return uninitialised memory.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}

# torch does not give the same numbers twice for these. They may differ by what torch's tests allow.
UNSTEADY = {"linalg_lstsq"}  # LAPACK's gelsy starts from pivots that torch does not initialise


def difference(
    expected: Any,
    actual: Any,
    given: tuple[Sequence[Any], Sequence[Any]] = ((), ()),
    values: bool = True,
    exact: bool = True,
) -> str | None:
    """The first difference between two results, in words, or None.

    `given` has the arguments of both calls: a result that is a view of one of them must be a view of it in both.
    Without `values`, the numbers in tensors are not compared. With `exact`, they must be equal to the last bit.
    """
    theirs, ours = list(leaves(expected)), list(leaves(actual))
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    storages = [_storages(arguments) for arguments in given]
    for i, (its, mine) in enumerate(zip(theirs, ours, strict=True)):
        if type(mine) is not type(its):
            return f"result {i}: {type(mine).__name__}, not {type(its).__name__}"
        if isinstance(its, torch.Tensor):
            found = _between_tensors(its, mine, values, exact)
            views = [known.get(_storage(tensor)) for known, tensor in zip(storages, (its, mine), strict=True)]
            if not found and views[0] != views[1]:
                found = f"a view of tensor {views[1]} among the arguments, not of {views[0]}"
        else:
            found = None if mine == its or (mine != mine and its != its) else f"{mine!r}, not {its!r}"
        if found:
            return f"result {i}: {found}"
    return None


def leaves(value: Any) -> Iterator[Any]:
    """The tensors, numbers, ... in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def duplicate(value: Any) -> Any:
    """Copies of tensors in nested lists and tuples, which keep their strides and the memory that they share."""
    return copy.deepcopy(value)


def _storage(tensor: torch.Tensor) -> int | None:
    """The storage of a tensor, if it is strided."""
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else None


def _storages(arguments: Sequence[Any]) -> dict[int | None, int]:
    tensors = (value for value in leaves(arguments) if isinstance(value, torch.Tensor))
    known: dict[int | None, int] = {}
    for i, tensor in enumerate(tensors):
        known.setdefault(_storage(tensor), i)
    return known


def _between_tensors(expected: torch.Tensor, actual: torch.Tensor, values: bool, exact: bool) -> str | None:
    for name, read in _METADATA.items():
        if read(expected) != read(actual):
            return f"{name} {read(actual)}, not {read(expected)}"
    if expected.dtype == torch.complex32:  # torch cannot compare two of these
        expected, actual = expected.to(torch.complex64), actual.to(torch.complex64)
    if not values or (expected.layout == torch.strided and torch.equal(expected, actual)):
        return None
    try:
        tolerance = {"rtol": 0, "atol": 0} if exact else {}
        torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)
    except AssertionError as error:
        return " ".join(str(error).split())
    return None


_METADATA = {
    "dtype": lambda t: t.dtype,
    "shape": lambda t: t.shape,
    "layout": lambda t: t.layout,
    "device": lambda t: t.device,
    "strides": lambda t: t.stride() if t.layout == torch.strided else None,
    "storage offset": lambda t: t.storage_offset() if t.layout == torch.strided else None,
    "requires_grad": lambda t: t.requires_grad,
    "conj": lambda t: t.is_conj(),
    "neg": lambda t: t.is_neg(),
}
