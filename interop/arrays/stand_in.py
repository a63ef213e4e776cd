"""A stand-in for a module, a class or an object whose functions take only arrays."""

import contextlib
import copy
import functools
import inspect
import operator
import os
import threading
import types
import weakref
from collections.abc import Callable, ItemsView, Iterator, ValuesView
from typing import Any

from numpy import ndarray

from interop.arrays.calls import SCALARS, Call, WeakReference, Wrapping, keep_from_compiler, of_tensors, skip_frames
from interop.arrays.containers import is_container
from interop.arrays.conversion import is_exactly
from interop.arrays.options import Options

__all__ = ["StandIn"]

_looking_up = threading.RLock()
"""Held between looking for a tensor of an array and remembering another one, so that threads get the same."""
os.register_at_fork(before=_looking_up.acquire, after_in_parent=_looking_up.release, after_in_child=_looking_up.release)


class StandIn(Wrapping):
    """A stand-in for a module, a class or an object whose functions take only arrays: see `with_arrays`."""

    _interop_options: Options
    _interop_known: dict[str, Any]  # wrapped attributes, by name
    _interop_tensors: dict[str, weakref.ref[Any]]  # the tensors of arrays

    def __init__(self, wrapped: Any, options: Options):
        self.__dict__.update(__wrapped__=wrapped, _interop_options=options, _interop_known={}, _interop_tensors={})
        with contextlib.suppress(Exception):  # of an object that computes it
            self.__dict__["__doc__"] = wrapped.__doc__

    def _interop_result(self, one: Any) -> Any:
        wrapped = self.__wrapped__
        if one is wrapped:  # from methods that can be chained
            return self
        of_class = wrapped if isinstance(wrapped, type) else type(wrapped)
        if (type(one) is of_class and type(one) not in SCALARS and not is_container(one)) or isinstance(
            one, (ItemsView, ValuesView)
        ):
            return StandIn(one, self._interop_options)
        return one

    def __reduce__(self) -> tuple[Any, ...]:
        return StandIn, (self.__wrapped__, self._interop_options)

    def __deepcopy__(self, memo: dict[int, Any]) -> "StandIn":
        return StandIn(copy.deepcopy(self.__wrapped__, memo), self._interop_options)

    def __copy__(self) -> "StandIn":
        return StandIn(copy.copy(self.__wrapped__), self._interop_options)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__wrapped__, name)
        if name.startswith("__array"):
            return value  # for NumPy
        if type(value) is ndarray:
            return self._interop_array(name, value)
        if not (callable(value) or isinstance(value, types.ModuleType)):
            result = Call(getattr, self._interop_options).result(value)
            if result is not value and isinstance(value, (list, dict)):
                return StandIn(value, self._interop_options)  # so that writes reach the original
            return self._interop_result(result)
        known = self._interop_known.get(name)
        if known is None or not _is_same(known[0], value):
            known = self._interop_known[name] = (value, self._interop_made(value))
        return known[1]

    def _interop_array(self, name: str, array: ndarray[Any, Any]) -> Any:
        """The same tensor as at the last access, if it lives and nothing has changed: its version counts writes."""
        made = Call(getattr, self._interop_options).result(array)
        if not is_exactly(made, array):  # a copy, for example
            return made
        with _looking_up:
            before = self._interop_tensors.get(name)
            known = None if before is None else before()
            if known is not None and known.is_inference() == made.is_inference() and is_exactly(known, array):
                return known
            self._interop_tensors[name] = weakref.ref(made)
            return made

    def _interop_made(self, value: Any) -> Any:
        if isinstance(value, type) and issubclass(value, BaseException):
            return value  # `except` needs the class itself
        if not inspect.isroutine(value):
            return StandIn(value, self._interop_options)
        call = of_tensors(value, self._interop_options)
        if isinstance(self.__wrapped__, types.ModuleType):
            return call
        # A cycle would keep the object alive: a file open, and large memory.
        this, wrapped, options = WeakReference(self), self.__wrapped__, self._interop_options

        @functools.wraps(value)
        def method(*args: Any, **kwargs: Any) -> Any:
            standin = this()
            standin = StandIn(wrapped, options) if standin is None else standin
            return standin._interop_result(call(*args, **kwargs))

        return method

    def _interop_call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self._interop_result(of_tensors(function, self._interop_options)(*args, **kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        self._interop_call(setattr, self, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return f"with_arrays({self.__wrapped__!r})"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._interop_call(self.__wrapped__, *args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._interop_call(operator.getitem, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._interop_call(operator.setitem, self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._interop_call(operator.delitem, self, key)

    def __len__(self) -> int:
        return len(self.__wrapped__)

    def __bool__(self) -> bool:
        return bool(self.__wrapped__)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __int__(self) -> int:
        return int(self.__wrapped__)

    def __float__(self) -> float:
        return float(self.__wrapped__)

    def __complex__(self) -> complex:
        return complex(self.__wrapped__)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        raise TypeError(f"a class cannot be derived from {self!r}; derive it from the class, and wrap the result")

    def __instancecheck__(self, one: Any) -> bool:
        return isinstance(one.__wrapped__ if isinstance(one, StandIn) else one, self.__wrapped__)

    def __subclasscheck__(self, one: Any) -> bool:
        return issubclass(one.__wrapped__ if isinstance(one, StandIn) else one, self.__wrapped__)

    def __contains__(self, one: Any) -> bool:
        return bool(self._interop_call(operator.contains, self, one))

    def __iter__(self) -> Iterator[Any]:
        return (Call(iter, self._interop_options).result(one) for one in self.__wrapped__)

    def __enter__(self) -> Any:
        return self._interop_result(self.__wrapped__.__enter__())

    def __exit__(self, *error: Any) -> Any:
        return self.__wrapped__.__exit__(*error)


def _is_same(before: Any, now: Any) -> bool:
    """Whether an attribute is what it was before. Each access makes another bound method, which is equal."""
    return before is now or (inspect.isroutine(now) and type(before) is type(now) and bool(before == now))


def _of_operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    def method(self: StandIn, *others: Any) -> Any:
        return self._interop_call(function, *others, self) if reflected else self._interop_call(function, self, *others)

    return method


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: StandIn, other: Any) -> Any:
        changed = []

        @functools.wraps(function)
        def call(one: Any, given: Any) -> Any:
            found = function(one, given)
            if found is not one:
                return found
            changed.append(one)
            return None

        result = self._interop_call(call, self, other)
        return self if changed else result

    return method


for _name in [
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]:
    _operator = getattr(operator, f"__{_name}__")
    setattr(StandIn, f"__{_name}__", _of_operator(_operator))
    setattr(StandIn, f"__r{_name}__", _of_operator(_operator, reflected=True))
    setattr(StandIn, f"__i{_name}__", _in_place(getattr(operator, f"__i{_name}__")))
for _name in ["lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert"]:
    setattr(StandIn, f"__{_name}__", _of_operator(getattr(operator, f"__{_name}__")))
for _name, _function in (("divmod", divmod), ("rdivmod", divmod), ("round", round)):
    setattr(StandIn, f"__{_name}__", _of_operator(_function, reflected=_name == "rdivmod"))


for _name, _method in vars(StandIn).items():
    if isinstance(_method, types.FunctionType):
        keep_from_compiler(_method, f"{_name} of a stand-in")
        skip_frames(_method)
