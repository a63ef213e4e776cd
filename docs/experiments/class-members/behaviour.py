"""Finds out, by doing it, what a class with a tensor in it keeps alive, what is collected, and what is copied."""

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

import interop

from . import ways

YES, NO, NOTHING = "yes", "no", "-"
COUNTED, COLLECTED, LEAKS = "at once", "collected", "leaks"
"""What ends a tensor that nobody refers to any more: its last reference, garbage collection, or nothing."""


class Witness:
    """Put on a tensor as an attribute, it ends with the tensor's Python object."""


def behaviour() -> dict[str, dict[str, str]]:
    """The answer of each way to each question."""
    classes, picklable = ways.classes(), ways.picklable()
    return {
        question: {way: _answer(ask, (picklable if ask in WRITTEN else classes)[way]) for way in ways.WAYS}
        for question, ask in QUESTIONS.items()
    }


def _answer(ask: Callable[[type], Any], kind: type) -> str:
    try:
        answer = ask(kind)
    except Exception as error:  # which one it is, is the answer
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if isinstance(answer, bool):
        return YES if answer else NO
    return answer


@contextmanager
def _uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def _none(kind: type) -> bool:
    return isinstance(kind(None), kind)


def _list(kind: type) -> bool:
    return isinstance(kind([1.0]), kind)


def _identity(kind: type) -> bool:
    t = torch.ones(3)
    return kind(t).get() is t


def _attributes(kind: type) -> bool:
    t = torch.ones(3)
    t.note = "kept"
    m = kind(t)
    del t
    gc.collect()
    return getattr(m.get(), "note", None) == "kept"


def _tensor_over_array() -> tuple[Tensor, weakref.ref]:
    """A tensor, and a reference to the array that owns its memory."""
    array = np.ones(3, np.float32)
    return interop.from_numpy(array), weakref.ref(array)


def _memory_lives(kind: type) -> bool:
    t, owner = _tensor_over_array()
    m = kind(t)
    del t
    gc.collect()
    return owner() is not None and m.first() == 1


def _memory_ends(kind: type) -> bool:
    t, owner = _tensor_over_array()
    m = kind(t)
    with _uncollected():
        del t, m
        return owner() is None


def _other_memory(kind: type) -> bool:
    t = torch.ones(3)
    m = kind(t)
    t.data = torch.full((3,), 2.0)
    return m.first() == 2


def _gradient(kind: type) -> bool:
    t = torch.ones(3, requires_grad=True)
    kind(t).neg().sum().backward()
    return t.grad is not None and t.grad.tolist() == [-1.0] * 3


def _tracked(kind: type) -> bool:
    return gc.is_tracked(kind(torch.ones(3)))


def _cycle_by_attribute(kind: type) -> str:
    t = torch.ones(3)
    m = kind(t)
    t.owner = m
    end = _witness(t)
    with _uncollected():
        del t, m
        return _end(end)


def _cycle_that_is_broken(kind: type) -> str:
    t = torch.ones(3)
    m = kind(t)
    if not hasattr(m, "close"):
        return NOTHING
    t.owner = m
    end = _witness(t)
    with _uncollected():
        m.close()
        del t, m
        return _end(end)


def _cycle_by_hook(kind: type) -> str:
    t = torch.ones(3, requires_grad=True)
    m = kind(t)
    t.register_hook(lambda _, m=m: None)
    end = _witness(t)
    with _uncollected():
        del t, m
        return _end(end)


def _cycle_by_graph(kind: type) -> str:
    t = torch.ones(3, requires_grad=True) * 2
    m = kind(t)
    t.register_hook(lambda _, m=m: None)
    end = _witness(t)
    with _uncollected():
        del t, m
        return _end(end)


def _witness(t: Tensor) -> weakref.ref:
    t.witness = Witness()
    return weakref.ref(t.witness)


def _end(end: weakref.ref) -> str:
    if end() is None:
        return COUNTED
    gc.collect()
    return COLLECTED if end() is None else LEAKS


def _pickle(kind: type) -> bool:
    t = torch.tensor([1.0, 2.0])
    return torch.equal(pickle.loads(pickle.dumps(kind(t))).get(), t)


def _deepcopy(kind: type) -> bool:
    t = torch.tensor([1.0, 2.0])
    copied = copy.deepcopy(kind(t)).get()
    return torch.equal(copied, t) and copied.data_ptr() != t.data_ptr()


def _copy(kind: type) -> bool:
    t = torch.tensor([1.0, 2.0])
    return copy.copy(kind(t)).get().data_ptr() == t.data_ptr()


def _shared_in_pickle(kind: type) -> bool:
    t = torch.ones(3)
    one, two = pickle.loads(pickle.dumps([kind(t), kind(t)]))
    return one.get().data_ptr() == two.get().data_ptr()


def _parameter_in_pickle(kind: type) -> bool:
    return pickle.loads(pickle.dumps(kind(torch.ones(3, requires_grad=True)))).get().requires_grad


def _deepcopy_of_a_result(kind: type) -> bool:
    t = torch.ones(3, requires_grad=True) * 2
    return torch.equal(copy.deepcopy(kind(t)).get(), t)


LIFETIME = {
    "takes None": _none,
    "takes a list": _list,
    "gives back the same object": _identity,
    "with its attributes, kept by nobody else": _attributes,
    "keeps the memory alive": _memory_lives,
    "frees it at once at its end": _memory_ends,
    "follows `t.data = ...`": _other_memory,
    "gradients come back through it": _gradient,
}
COLLECTION = {
    "the collector knows the instance": _tracked,
    "`t.owner = instance`": _cycle_by_attribute,
    "the same, after `instance.close()`": _cycle_that_is_broken,
    "a hook of a leaf has the instance": _cycle_by_hook,
    "a hook of a result has it": _cycle_by_graph,
}
COPIES = {
    "`pickle`": _pickle,
    "`copy.deepcopy`": _deepcopy,
    "`copy.copy`, memory shared": _copy,
}
WITH_REDUCE = {
    "`pickle`, with `__reduce__`": lambda kind: _pickle(kind),
    "`copy.deepcopy`, with `__reduce__`": lambda kind: _deepcopy(kind),
    "`copy.copy`, memory shared, with `__reduce__`": lambda kind: _copy(kind),
    "a pickle of two still shares memory": _shared_in_pickle,
    "a pickle keeps `requires_grad`": _parameter_in_pickle,
    "`copy.deepcopy` of a result in a graph": _deepcopy_of_a_result,
}
QUESTIONS = LIFETIME | COLLECTION | COPIES | WITH_REDUCE
WRITTEN = set(WITH_REDUCE.values())
"""What is asked of the classes that have a ``__reduce__``."""
