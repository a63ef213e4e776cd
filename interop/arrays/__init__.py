"""`from_array` converts any library's arrays; `with_arrays` lets NumPy functions take tensors."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from interop.arrays.calls import SCALARS, check_mutated, of_tensors
from interop.arrays.conversion import from_array
from interop.arrays.gradients import operator_of
from interop.arrays.options import Options, name_of
from interop.arrays.stand_in import StandIn

__all__ = ["from_array", "with_arrays"]


def with_arrays(
    target: Any = None,
    /,
    *,
    gradients: str = "refuse",
    devices: Iterable[str] = ("cpu",),
    may_copy: bool = True,
    mutates_args: Iterable[str | int] = (),
    callbacks: bool = False,
    vjp: Callable[..., Any] | None = None,
    op: str | None = None,
    fake: Callable[..., Any] | None = None,
) -> Any:
    """Let functions, classes or modules for NumPy take and return tensors.

    Tensors among the arguments become arrays over the same memory, even inside lists, tuples, dicts and dataclasses.
    Arrays in the result become tensors over the same memory. If such an array is an argument's array or a view of it,
    the result is the argument's tensor or a view of that tensor. Everything else passes through unchanged: NumPy's
    scalars, masked arrays, arrays of dtypes that torch lacks. No state is kept between calls.

    Parameters
    ----------
    target : callable, class, module or object, optional
        For a class, a module or an object, the result is a stand-in. Its methods and functions take tensors, and its
        arrays are tensors. The instances of a class are stand-ins too. ``__wrapped__`` is the original. Without
        `target`, the result is a decorator. A generator or coroutine function is rejected.
    gradients : {"refuse", "detach"}
        What to do with a tensor that requires grad, outside of ``torch.no_grad()``. Autograd does not see work on
        arrays, so results have a gradient only with `vjp`.
    devices : iterable of str
        The device types that arguments may be on, besides the CPU. A tensor on such a device is copied to the CPU, and
        result arrays are copied to its device.
    may_copy : bool
        Whether to copy memory that cannot be shared. Arguments are copied if they are on other devices or have a
        pending conjugation or negation. The function then gets read-only arrays, so that no write is lost. Results are
        copied if they are read-only, misaligned, byte-swapped or have negative strides.
    mutates_args : iterable of str or int
        Names or positions of arguments that the function writes to. Each call increments their versions, so that a
        backward pass that has saved them raises.
    callbacks : bool
        Whether functions among the arguments are functions of tensors. They receive tensors in place of arrays, and
        their callers receive arrays in place of returned tensors.
    vjp : callable, optional
        ``vjp(grad, output, *arguments)``, which makes the function differentiable. It receives tensors: the gradient of
        the output (a tuple of gradients if the output is a tuple), the output, and the positional arguments of the
        call, without defaults. It returns a tuple with the gradient of each argument or None; for a single argument,
        the gradient alone. Its torch operators and functions with a `vjp` can be differentiated again; anything else
        raises. A call in vmap or in forward mode raises as well. With `vjp`, results of a float or complex type become
        tensors without dimensions, and a result never shares memory with an argument.
    op : str, optional
        Register the function as an operator of torch, ``"namespace::name"``, which a compiled graph keeps as one node.
        The argument types come from the function's annotations, or from a schema,
        ``"namespace::name(Tensor x, float y) -> Tensor"``. An operator's result must not share an argument's memory.
    fake : callable, optional
        For an operator: a function that describes the result, as for ``torch.library.register_fake``.

    Returns
    -------
    callable, or a stand-in
        With `op`, a ``torch.library.CustomOpDef``. Otherwise ``torch.compile`` breaks the graph at each call, and does
        not trace into it.

    Raises
    ------
    TypeError, ValueError
        If an argument of this function is wrong.
    TypeError, ValueError, RuntimeError
        From a call: the errors of `to_numpy`, with the name of the argument, or those of the function itself.
    """
    if gradients not in ("refuse", "detach"):
        raise ValueError(f"argument 'gradients' must be 'refuse' or 'detach', got {gradients!r}")
    if isinstance(devices, str) or isinstance(mutates_args, str):
        name, got = ("devices", devices) if isinstance(devices, str) else ("mutates_args", mutates_args)
        raise TypeError(f"argument {name!r} must be a sequence of strings, got {got!r}; write ({got!r},)")
    if op is not None and not isinstance(op, str):
        raise TypeError(f"argument 'op' must be a str such as 'namespace::name' or None, got {type(op).__name__}")
    for name, one in (("vjp", vjp), ("fake", fake)):
        if one is not None and not callable(one):
            raise TypeError(f"argument {name!r} must be callable or None, got {type(one).__name__}")
    if fake is not None and op is None:
        raise ValueError("argument 'fake' describes an operator's result; name the operator with op='namespace::name'")
    mutated = tuple(mutates_args)
    if mutated and vjp is not None:
        raise ValueError(
            "argument 'vjp' is for functions that change none of their arguments; leave 'mutates_args' out"
        )
    options = Options(gradients == "detach", _device_types(devices), may_copy, mutated, callbacks, vjp)
    wrap = functools.partial(_wrapped, options=options, op=op, fake=fake)
    return wrap if target is None else wrap(target)


def _device_types(devices: Iterable[str]) -> frozenset[str]:
    known = frozenset(devices)
    for one in known:
        try:
            fits = isinstance(one, str) and torch.device(one).type == one != "meta"
        except RuntimeError:
            fits = False
        if not fits:
            raise ValueError(
                f"argument 'devices' must contain types of devices that have memory, such as 'cuda', got {one!r}"
            )
    return known | {"cpu"}


def _wrapped(target: Any, options: Options, op: str | None, fake: Callable[..., Any] | None) -> Any:
    if isinstance(target, (Tensor, np.ndarray)) or type(target) in SCALARS:
        raise TypeError(
            "argument 'target' must be a function, a class, a module or an object of a library, got "
            f"{type(target).__name__}; interop.to_numpy and interop.from_numpy convert memory"
        )
    if inspect.isgeneratorfunction(target) or inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        raise TypeError(
            f"argument 'target' must be a function that returns its result, got {name_of(target)}, a generator or "
            "coroutine function, which runs after the call; wrap the functions that it calls"
        )
    if isinstance(target, (property, functools.cached_property)):
        raise TypeError(
            f"argument 'target' must be a function, got a {type(target).__name__}; wrap the function inside it: "
            f"write @{type(target).__name__} above @with_arrays"
        )
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_wrapped(target.__func__, options, op, fake))
    of_function = op is not None or options.vjp is not None or options.mutates_args
    if options.mutates_args and not isinstance(target, type) and callable(target):
        check_mutated(target, options.mutates_args)
    if inspect.isroutine(target) or (of_function and callable(target) and not isinstance(target, type)):
        if op is None:
            return of_tensors(target, options)
        return operator_of(of_tensors(target, options), target, op, fake, options)
    if of_function:
        name = "op" if op is not None else "vjp" if options.vjp is not None else "mutates_args"
        raise TypeError(
            f"argument {name!r} needs a function as 'target', got {type(target).__name__}; wrap the function itself"
        )
    return StandIn(target, options)
