"""The items of lists, tuples, dicts and dataclasses, and the tensors in them."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

__all__ = ["fill", "is_container", "is_dataclass", "items_of", "same_items", "tensors_in", "tuple_like"]


def is_dataclass(one: Any) -> bool:
    """Whether an object is an instance of a dataclass whose fields are its items."""
    # The fields of a torch.nn.Module may be parameters, which are not in its __dict__.
    return hasattr(type(one), "__dataclass_fields__") and not isinstance(one, torch.nn.Module)


def is_container(one: Any) -> bool:
    """Whether the items of an object are converted."""
    return isinstance(one, (list, tuple, dict)) or is_dataclass(one)


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
    if not hasattr(kind, "_fields"):  # torch.return_types, and other tuples without field names
        return kind(values)
    made = tuple.__new__(kind, values)  # the class's own __new__ would repeat its work
    for name, value in getattr(like, "__dict__", {}).items():  # SciPy's tuples have attributes that are not items
        made.__dict__[name] = convert(value)
    return made


def same_items(one: Iterable[tuple[Any, Any]], other: list[tuple[Any, Any]]) -> bool:
    """Whether both have equal keys and the very same values."""
    mine = list(one)
    return len(mine) == len(other) and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(mine, other, strict=True))


def tensors_in(one: Any, seen: set[int]) -> Iterator[Tensor]:
    """The tensors in an object. `seen` has the ids of containers that were visited before."""
    if isinstance(one, Tensor):
        yield one
    elif is_container(one) and id(one) not in seen:
        seen.add(id(one))
        for _, value in items_of(one):
            yield from tensors_in(value, seen)
