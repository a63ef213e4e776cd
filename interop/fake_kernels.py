"""Fake kernels in Python, for operators that Cython code defines."""

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["register_fake"]

_libraries: dict[str, torch.library.Library] = {}
"""The owner of each operator's fake kernel. torch removes the kernel when nothing refers to its library. The dispatcher
remembers the signatures of an operator as long as the operator has a kernel, so `forget_in_python` of torch_ops.h
removes the item when the operator's module is executed again."""

# torch wants a Python fake kernel of an operator that C++ defines to come from the one module that the C++ names. It
# identifies that module by the caller's frame. A compiled module has no frame, so torch would see whoever imports it. A
# frame that belongs to no module passes.
_call: Callable[..., None] = eval("lambda function, *arguments, **options: function(*arguments, **options)", {})


def register_fake(name: str, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Register a fake kernel in Python for an operator that Cython code defines.

    ``torch.library.register_fake`` does so for operators that Python code defines.

    An operator whose result has a size that depends on data needs a fake kernel, which gets such a size from
    ``torch.library.get_ctx().new_dynamic_size()``. Other operators can have a Meta kernel in Cython instead. A second
    fake kernel of an operator replaces the first one, so that a module can be loaded again.

    Parameters
    ----------
    name
        The operator: ``"demo::places"``, or ``"demo::places.out"`` for an overload. It must be defined already.
    function
        The fake kernel. It takes the operator's arguments and returns tensors with the shapes, dtypes and devices of
        its results. Without it, `register_fake` returns a decorator.

    Raises
    ------
    TypeError
        If `name` is not a str, or `function` is not callable.
    ValueError
        If there is no such operator.
    RuntimeError
        If the operator has a Meta kernel, or a kernel for ``CompositeImplicitAutograd``.
    """
    if not isinstance(name, str):
        raise TypeError(f"argument 'name' must be the str of an operator, such as 'demo::places', got {name!r}")
    if function is None:
        return lambda function: register_fake(name, function)
    if not callable(function):
        raise TypeError(f"argument 'function' must be callable, got {function!r}")
    namespace, _, operator = name.partition("::")
    if not _is_defined(namespace, operator):
        raise ValueError(f"argument 'name': there is no operator {name!r}; define it before its fake kernel")
    library = torch.library.Library(namespace, "FRAGMENT")
    _libraries.pop(name, None)
    _call(torch.library.register_fake, name, function, lib=library, allow_override=False)
    _libraries[name] = library
    return function


def _is_defined(namespace: str, operator: str) -> bool:
    packet, _, overload_name = operator.partition(".")
    found = getattr(getattr(torch.ops, namespace, None), packet, None)
    return hasattr(found, overload_name or "default")
