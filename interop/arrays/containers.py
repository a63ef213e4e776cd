"""The items of lists, tuples, dicts and dataclasses, and the tensors in them."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

__all__ = [
    "fill",
    "has_constructor",
    "is_container",
    "is_dataclass",
    "items_of",
    "merged",
    "same_items",
    "snapshot",
    "tensors_in",
    "tuple_like",
]


def is_dataclass(one: Any) -> bool:
    """Whether an object is an instance of a dataclass whose fields are its items."""
    # The fields of a torch.nn.Module may be parameters, which are not in its __dict__.
    return hasattr(type(one), "__dataclass_fields__") and not isinstance(one, torch.nn.Module)


def is_container(one: Any) -> bool:
    """Whether the items of an object are converted."""
    return isinstance(one, (list, tuple, dict)) or is_dataclass(one)


def has_constructor(one: Any) -> bool:
    """Whether an object is a tuple whose class takes other arguments than the items: scipy.LowLevelCallable."""
    kind = type(one)
    if not isinstance(one, tuple) or kind is tuple or hasattr(kind, "_fields") or hasattr(kind, "n_sequence_fields"):
        return False
    return getattr(kind, "__new__", None) is not getattr(tuple, "__new__", None)


def items_of(container: Any) -> Iterable[tuple[Any, Any]]:
    """The items of a container with their keys, indices or names of fields."""
    if isinstance(container, dict):
        return container.items()
    if isinstance(container, (list, tuple)):
        return enumerate(container)
    fields = (field.name for field in dataclasses.fields(container))
    return [(name, getattr(container, name)) for name in fields if hasattr(container, name)]


def fill(container: Any, items: list[tuple[Any, Any]]) -> None:
    """Replace the items of a list, dict or dataclass, in place."""
    if isinstance(container, list):
        container[:] = [value for _, value in items]
    elif isinstance(container, dict):  # item by item: `update` of a Counter adds, and some classes lack it
        for key in container.keys() - {key for key, _ in items}:
            del container[key]
        for key, value in items:
            if key not in container or container[key] is not value:
                container[key] = value
    else:
        for name, value in items:
            object.__setattr__(container, name, value)  # frozen dataclasses accept this too


def tuple_like(like: tuple[Any, ...], values: list[Any], convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A tuple of the same class as `like`, with other values."""
    kind = type(like)
    if kind is tuple:
        return tuple(values)
    if hasattr(kind, "n_sequence_fields") or kind is torch.Size:  # torch.return_types
        return kind(values)
    made = tuple.__new__(kind, values)  # the class's own __new__ may repeat its work, or take other arguments
    for name, value in getattr(like, "__dict__", {}).items():  # SciPy's tuples have attributes that are not items
        made.__dict__[name] = convert(value)
    return made


def same_items(one: Iterable[tuple[Any, Any]], other: list[tuple[Any, Any]]) -> bool:
    """Whether both have the same keys and the very same values."""
    mine = list(one)
    return len(mine) == len(other) and all(
        _same_key(a[0], b[0]) and a[1] is b[1] for a, b in zip(mine, other, strict=True)
    )


def _same_key(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, int) and one == other)  # keys that are tensors have no single answer


def merged(
    container: Any, items: list[tuple[Any, Any]], new: list[Any], now: list[tuple[Any, Any]], back: list[Any]
) -> list[tuple[Any, Any]]:
    """The items of a container after the changes that a function made in its copy.

    The container had `items`; the copy had the values `new` in their place, and has the items `now`, which are the
    values `back` for the container. Somebody else may have changed the container in the meantime. If both have changed
    a list, the copy decides, unless the function only appended to it.
    """
    mine = [(key, value) for (key, _), value in zip(now, back, strict=True)]
    current = list(items_of(container))
    if same_items(current, items):
        return mine
    if isinstance(container, list):
        only_more = len(now) >= len(new) and all(one is value for (_, one), value in zip(now, new, strict=False))
        return list(enumerate([value for _, value in current + mine[len(new) :]])) if only_more else mine
    found, before = dict(current), {key: value for (key, _), value in zip(items, new, strict=True)}
    for key in before.keys() - {key for key, _ in now}:
        found.pop(key, None)
    for (key, one), (_, value) in zip(now, mine, strict=True):
        if key not in before or before[key] is not one:
            found[key] = value
    return list(found.items())


def snapshot(one: Any, memo: dict[int, Any]) -> Any:
    """An object with the same items, which later changes of lists and dicts in it do not reach.

    `memo` has the copies so far. Objects of other classes, which may compare by identity, stay themselves.
    """
    if type(one) not in (list, tuple, dict):
        return one
    if id(one) not in memo:
        if isinstance(one, tuple):
            values = [snapshot(value, memo) for value in one]
            return one if all(new is old for new, old in zip(values, one, strict=True)) else tuple(values)
        memo[id(one)] = made = one.copy()
        fill(made, [(key, snapshot(value, memo)) for key, value in items_of(one)])
    return memo[id(one)]


def tensors_in(one: Any, seen: set[int], kind: type = Tensor) -> Iterator[Any]:
    """The tensors in an object, or the instances of another class.

    `seen` has the ids of containers that were visited before.
    """
    if isinstance(one, kind):
        yield one
    elif is_container(one) and id(one) not in seen:
        seen.add(id(one))
        for _, value in items_of(one):
            yield from tensors_in(value, seen, kind)
