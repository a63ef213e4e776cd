"""`from_array` converts any library's arrays; `with_arrays` lets NumPy functions take tensors."""

import bisect
import contextlib
import copy
import dataclasses
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor
from torch._C import _is_torch_function_mode_enabled
from torch.overrides import handle_torch_function, has_torch_function

from interop._bridges import (
    arrays_of,
    from_buffer,
    from_cuda_array_interface,
    from_dlpack,
    from_numpy,
    named_arrays_of,
    to_numpy,
)

__all__ = ["from_array", "with_arrays"]

_SCALARS: frozenset[type] = frozenset({int, float, complex, bool, str, bytes, type(None), slice, np.float64, np.int64})
"""Types whose instances contain neither tensors nor arrays."""

_PLAIN: frozenset[type] = _SCALARS | {ndarray}


def from_array(
    obj: Any, /, *, device: torch.device | str | None = None, copy: bool | None = None, on_readonly: str = "raise"
) -> Tensor:
    """A tensor over the memory of an array of any library.

    The first of these cases that applies decides. If it raises, no other is tried. `obj` is a tensor; it has
    ``__dlpack__``, as NumPy's arrays do; it has ``__cuda_array_interface__``; it exports a buffer; it has
    ``__array_interface__``, ``__array_struct__`` or ``__array__``, in NumPy's order.

    Parameters
    ----------
    obj
        The array. For a list or a number, use ``torch.tensor(obj)``, which copies.
    device : torch.device or str, optional
        The tensor's device, as in ``asarray`` of the array API standard. If `obj` is on another device, it is copied.
    copy : bool, optional
        As in ``asarray``. True: always copy. False: raise if a copy is necessary. None: copy if necessary.
    on_readonly : {"raise", "share", "copy"}
        What to do with read-only memory that is not copied for another reason, as in `from_numpy`.

    Returns
    -------
    torch.Tensor
        If `obj` is a tensor, `obj` itself, unless it is copied. Otherwise a tensor that shares ownership of the memory
        with `obj`: the result of `from_dlpack`, `from_cuda_array_interface`, `from_buffer` or `from_numpy`.

    Raises
    ------
    TypeError
        If `obj` is not an array; or from the function that converts it.
    ValueError
        If `copy` is False and a copy is necessary; or from the function that converts it.
    BufferError
        From `from_dlpack`, or the exporter.
    """
    if on_readonly not in ("raise", "share", "copy"):
        raise ValueError(f"argument 'on_readonly' must be 'raise', 'share' or 'copy', got {on_readonly!r}")
    kind = type(obj)
    if isinstance(obj, ndarray) and copy is not False and _torch_lacks(obj):
        obj, copy = _copied(obj), None
    if not isinstance(obj, Tensor) and hasattr(kind, "__dlpack__"):
        return from_dlpack(obj, device=device, copy=copy, on_readonly="share" if copy else on_readonly)  # type: ignore[arg-type]
    # A copy that the policy makes also counts as a copy.
    readonly: Any = "share" if copy else "raise" if copy is False and on_readonly == "copy" else on_readonly
    if isinstance(obj, Tensor):
        tensor = obj
    elif hasattr(obj, "__cuda_array_interface__"):
        tensor = from_cuda_array_interface(obj, on_readonly=readonly)
    elif _exports_buffer(obj):
        tensor = from_buffer(obj, on_readonly=readonly)
    elif any(hasattr(kind, name) for name in ("__array_interface__", "__array_struct__", "__array__")):
        tensor = from_numpy(np.asarray(obj, copy=False if copy is False else None), on_readonly=readonly)
    else:
        raise TypeError(
            "argument 'obj' must support DLPack, the CUDA array interface, the buffer protocol or NumPy's array "
            f"interface, got {kind.__name__}; torch.tensor(obj) copies lists and numbers"
        )
    there = tensor.device if device is None else torch.empty(0, device=device).device
    if copy is False and tensor.device != there:
        raise ValueError(
            f"argument 'copy' is False, but a copy is necessary to move 'obj' from {tensor.device} to {there}"
        )
    return tensor.to(there, copy=copy is True)


def _torch_lacks(array: ndarray[Any, Any]) -> bool:
    """Whether no tensor can have the array's strides, alignment or byte order."""
    flags, itemsize = array.flags, array.itemsize
    strides = (stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1)
    fits = flags.aligned and array.dtype.isnative and all(one >= 0 and one % itemsize == 0 for one in strides)
    return not (fits or isinstance(array, np.ma.MaskedArray))  # a copy would drop the mask


def _copied(array: ndarray[Any, Any]) -> ndarray[Any, Any]:
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _exports_buffer(obj: Any) -> bool:
    try:
        memoryview(obj).release()
    except TypeError:
        return False
    except (BufferError, ValueError):  # from_buffer explains it
        return True
    return True


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The checked arguments of `with_arrays`."""

    detach: bool = False
    devices: frozenset[str] = frozenset({"cpu"})
    may_copy: bool = True
    mutates_args: tuple[str | int, ...] = ()
    callbacks: bool = False
    vjp: Callable[..., Any] | None = None


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
        `target`, the result is a decorator.
    gradients : {"refuse", "detach"}
        What to do with a tensor that requires grad, outside of ``torch.no_grad()``. Autograd does not see work on
        arrays, so results have a gradient only with `vjp`.
    devices : iterable of str
        The device types that arguments may be on. A tensor on a device other than the CPU is copied to the CPU, and
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
        raises. With `vjp`, results of a float or complex type become tensors without dimensions, and a result never
        shares memory with an argument.
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
    options = Options(gradients == "detach", frozenset(devices), may_copy, mutated, callbacks, vjp)
    wrap = functools.partial(_wrapped, options=options, op=op, fake=fake)
    return wrap if target is None else wrap(target)


def _wrapped(target: Any, options: Options, op: str | None, fake: Callable[..., Any] | None) -> Any:
    if isinstance(target, (Tensor, np.ndarray)) or target is None:
        raise TypeError(
            "argument 'target' must be a function, a class, a module or an object of a library, got "
            f"{type(target).__name__}; interop.to_numpy and interop.from_numpy convert memory"
        )
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_wrapped(target.__func__, options, op, fake))
    of_function = op is not None or options.vjp is not None or options.mutates_args
    if options.mutates_args and not isinstance(target, type) and callable(target):
        _check_mutated(target, options.mutates_args)
    if inspect.isroutine(target) or (of_function and callable(target) and not isinstance(target, type)):
        if op is None:
            return _function(target, options)
        from interop.array_gradients import operator_of

        return operator_of(_function(target, options), target, op, fake, options)
    if of_function:
        name = "op" if op is not None else "vjp" if options.vjp is not None else "mutates_args"
        raise TypeError(
            f"argument {name!r} needs a function as 'target', got {type(target).__name__}; wrap the function itself"
        )
    return StandIn(target, options)


def name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _function(function: Callable[..., Any], options: Options) -> Callable[..., Any]:
    """The wrapper of `function` that takes tensors.

    Most calls pass only numbers and plain ``torch.Tensor`` objects, which the wrapper converts itself. All others take
    the slow path, `_Call`.
    """
    may_hold = _may_hold_or_be_called if options.callbacks else _may_hold

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = arrays_of(args, may_hold)
        named = named_arrays_of(kwargs, may_hold, args, given) if kwargs and given is not None else kwargs
        if given is None or named is None or options.mutates_args:
            return _call(wrapper, function, options, args, kwargs)
        result = function(*given, **named) if kwargs else function(*given)
        kind = type(result)
        if kind is ndarray and result.base is None and result.size:  # so it is no argument's array
            try:
                return from_numpy(result)
            except (TypeError, ValueError):
                pass
        elif kind in _SCALARS and options.vjp is None:
            return result
        shared = [(array, one) for array, one in zip(given, args, strict=True) if array is not one]
        shared += [(named[name], one) for name, one in kwargs.items() if named[name] is not one]
        if kind is ndarray:
            return _tensor(result, shared, options.may_copy)
        call = _Call(function, options)
        call.shared = {id(array): (array, one) for array, one in shared}
        return call.result(result)

    _keep_from_compiler(wrapper, name_of(function))
    return wrapper


def _may_hold(one: Any) -> bool:
    """Whether an object may contain tensors, so that its items are checked."""
    return isinstance(one, (Tensor, list, tuple, dict, StandIn)) or _is_dataclass(one)


def _may_hold_or_be_called(one: Any) -> bool:
    return callable(one) or _may_hold(one)


def _is_dataclass(one: Any) -> bool:
    # The fields of a torch.nn.Module may be parameters, which are not in its __dict__.
    return hasattr(type(one), "__dataclass_fields__") and not isinstance(one, torch.nn.Module)


def _is_container(one: Any) -> bool:
    return isinstance(one, (list, tuple, dict)) or _is_dataclass(one)


def _items(container: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(container, dict):
        return container.items()
    if isinstance(container, (list, tuple)):
        return enumerate(container)
    fields = (field.name for field in dataclasses.fields(container))
    return [(name, getattr(container, name)) for name in fields if hasattr(container, name)]


def _fill(container: Any, items: list[tuple[Any, Any]]) -> None:
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


def _same(one: Iterable[tuple[Any, Any]], other: list[tuple[Any, Any]]) -> bool:
    mine = list(one)
    return len(mine) == len(other) and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(mine, other, strict=True))


def _tensor(array: Any, shared: list[tuple[Any, Tensor]], may_copy: bool) -> Any:
    """The result for an array: a tensor if torch supports its dtype."""
    if isinstance(array, np.ma.MaskedArray):
        return array
    for known, tensor in shared:
        # An array without a base owns its memory, unless it is empty.
        found = _over(array, known, tensor) if array is known or array.base is not None else None
        if found is not None:
            return found
    try:
        return from_numpy(array)
    except TypeError:
        return array
    except ValueError:
        if not may_copy:
            raise
        return from_numpy(_copied(array))


def _unwatched(tensor: Tensor) -> Tensor:
    return tensor.detach() if tensor.requires_grad else tensor


def _geometry(array: Any) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype


def _over(array: Any, known: Any, tensor: Tensor) -> Tensor | None:
    """An argument's tensor, or a view of it, for an array in its memory; None for other memory or other views.

    `known` is the argument's array. The function may have changed its shape, strides or dtype.
    """
    plain = _unwatched(tensor)
    if array is known and _geometry(array) == _geometry(to_numpy(tensor.detach())):
        return plain
    storage = tensor.untyped_storage()
    begin, itemsize = storage.data_ptr(), array.itemsize
    low, high = np.lib.array_utils.byte_bounds(array)
    if array.size == 0 or low < begin or high > begin + storage.nbytes() or (low - begin) % itemsize:
        return None
    if _torch_lacks(array):
        return None
    try:
        dtype = from_numpy(array, on_readonly="share").dtype
    except TypeError:
        return None
    if dtype != plain.dtype:
        try:  # a view of the same memory with the array's dtype
            plain = torch.view_as_real(plain) if dtype == plain.dtype.to_real() else plain.view(dtype)
        except RuntimeError:
            return None
        if plain.dtype != dtype:
            return None
    steps = [0 if size == 1 else step // itemsize for size, step in zip(array.shape, array.strides, strict=True)]
    return plain.as_strided(array.shape, steps, (low - begin) // itemsize)


class _Call:
    """One call: the conversions of its arguments and of its result."""

    def __init__(self, function: Callable[..., Any], options: Options):
        self.function, self.options = function, options
        self.shared: dict[int, tuple[Any, Tensor]] = {}  # arrays that share memory, and their tensors, by id
        self.copied: dict[int, tuple[Any, Tensor, Any]] = {}  # copies, their tensors and geometry
        self.arrays: dict[int, Any] = {}  # by the tensor's id
        # Each container, its items, the converted container, and its items.
        self.rebuilt: list[tuple[Any, list[tuple[Any, Any]], Any, list[tuple[Any, Any]]]] = []
        self.unshared: list[tuple[Any, Tensor]] | None = None  # writable arrays, and tensors that copy them
        self.places: list[tuple[int, int]] = []  # the start of each shared storage, and its key in `shared`
        self.memo: dict[int, tuple[Any, Any]] = {}
        self.device: torch.device | None = None  # the device of the results
        self.trail: list[Any] = []  # the path to the current argument or item

    def argument(self, one: Any) -> Any:
        """The value that the function receives."""
        if type(one) in _PLAIN:
            return one
        if isinstance(one, Tensor):
            return self.array(one)
        if isinstance(one, StandIn):
            return one.__wrapped__
        if _is_container(one):
            return self.mapped(one, self.argument, _PLAIN)
        if self.options.callbacks and callable(one) and not isinstance(one, type):
            of_arrays = _callback(one, self.options)
            return (
                of_arrays if inspect.isroutine(one) or isinstance(one, functools.partial) else _Called(one, of_arrays)
            )
        return one

    def array(self, tensor: Tensor) -> Any:
        if id(tensor) in self.arrays:
            return self.arrays[id(tensor)]
        options, plain = self.options, tensor
        if tensor.requires_grad and torch.is_grad_enabled():
            if not options.detach:
                raise RuntimeError(
                    "argument 'tensor' requires grad, and autograd does not see operations on arrays; pass "
                    ".detach(), or give with_arrays gradients='detach' or a gradient function as vjp="
                )
            plain = tensor.detach()
        if tensor.device.type != "cpu":
            if tensor.device.type not in options.devices or not options.may_copy:
                raise TypeError(
                    f"argument 'tensor' must be on device {' or '.join(sorted(options.devices))}, got {tensor.device}; "
                    f"copy it with .cpu(), or let with_arrays copy it with devices=('cpu', {tensor.device.type!r})"
                )
            if self.device not in (None, tensor.device):
                raise ValueError(f"argument 'tensor' must be on {self.device} like the others, got {tensor.device}")
            self.device = tensor.device
        if options.may_copy and (tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg()):
            array = to_numpy(plain, force=True)
            array.flags.writeable = False  # writes to a copy would be lost
            self.copied[id(array)] = (array, tensor, _geometry(array))
        else:
            array = to_numpy(plain)
            self.shared[id(array)] = (array, tensor)
        self.arrays[id(tensor)] = array
        return array

    def mapped(self, container: Any, convert: Callable[[Any], Any], plain: frozenset[type]) -> Any:
        """A container of the converted items: `container` itself if `convert` changes none of them."""
        if id(container) in self.memo:
            return self.memo[id(container)][1]
        items = list(_items(container))
        if plain.issuperset(type(value) for _, value in items):
            return container
        fixed = isinstance(container, tuple)
        made = container if fixed else copy.copy(container)
        if not fixed:  # a container that contains itself finds it here
            self.memo[id(container)] = (container, made)
        new = []
        for key, value in items:
            self.trail.append(key)
            new.append((key, convert(value)))
            self.trail.pop()
        if _same(new, items):
            made = container
        elif fixed:
            made = tuple_like(container, [value for _, value in new], convert)
        else:
            _fill(made, new)
            self.rebuilt.append((container, items, made, new))
        self.memo[id(container)] = (container, made)
        return made

    def write_back(self) -> None:
        """Apply the function's changes to our lists, dicts and dataclasses to the caller's."""
        rebuilt, self.rebuilt = self.rebuilt, []
        self.memo = {id(made): (made, container) for container, _, made, _ in rebuilt}
        for container, items, made, new in rebuilt:
            now = list(_items(made))
            if not _same(now, new):
                # Items that the function has not replaced stay the caller's own: a Parameter, an array, a graph.
                before = {id(value): own for (_, own), (_, value) in zip(items, new, strict=True)}
                _fill(
                    container,
                    [(key, before[id(one)] if id(one) in before else self.result(one)) for key, one in now],
                )
            fields = {name for name, _ in now} if _is_dataclass(made) else set()
            ours, theirs = (getattr(one, "__dict__", {}) for one in (container, made))
            for name in theirs.keys() - fields:
                if name not in ours or ours[name] is not theirs[name]:
                    ours[name] = self.result(theirs[name])
            for name in ours.keys() - theirs.keys() - fields:
                del ours[name]

    def near(self, array: Any) -> list[tuple[Any, Tensor]]:
        """The arguments whose memory may contain an array."""
        direct = [self.shared[key] for key in (id(array), id(array.base)) if key in self.shared]
        if direct or array.base is None or not self.shared:
            return direct
        if len(self.places) != len(self.shared):
            self.places = sorted((known.untyped_storage().data_ptr(), key) for key, (_, known) in self.shared.items())
        i = bisect.bisect_right(self.places, array.__array_interface__["data"][0], key=operator.itemgetter(0))
        return [self.shared[self.places[i - 1][1]]] if i else []

    def result(self, one: Any) -> Any:
        """The converted result."""
        kind = type(one)
        if isinstance(one, np.ndarray):
            if id(one) in self.copied and self.copied[id(one)][2] == _geometry(one):
                return _unwatched(self.copied[id(one)][1])
            tensor = _tensor(one, self.near(one), self.options.may_copy)
            if not isinstance(tensor, Tensor):
                return tensor
            if self.unshared is not None and one.flags.writeable and _torch_lacks(one):
                self.unshared.append((one, tensor))
            of_cpu = self.device is None or any(tensor is known for _, known in self.shared.values())
            return tensor if of_cpu else tensor.to(self.device)
        if self.options.vjp is not None and isinstance(one, (float, complex, np.inexact)):
            return torch.from_numpy(np.array(one)).to(self.device or "cpu")
        if kind in _SCALARS or not _is_container(one):
            return one
        return self.mapped(one, self.result, frozenset() if self.options.vjp else _SCALARS)

    def explain(self, error: Exception) -> None:
        """Name the argument in an error."""
        first, *rest = self.trail
        name = first if isinstance(first, str) else _parameters(self.function).get(first, first)
        where = f"argument {name!r}{''.join(f'[{key!r}]' for key in rest)} of {name_of(self.function)}"
        error.args = (str(error).replace("argument 'tensor'", where, 1),)


def _parameters(function: Callable[..., Any]) -> dict[int, str]:
    """The names of positional parameters; empty if the function has no signature."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # from some compiled functions
        return {}
    return {i: one.name for i, one in enumerate(found) if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)}


def tensors_in(one: Any, seen: set[int]) -> Iterator[Tensor]:
    if isinstance(one, Tensor):
        yield one
    elif _is_container(one) and id(one) not in seen:
        seen.add(id(one))
        for _, value in _items(one):
            yield from tensors_in(value, seen)


def _call(
    wrapper: Callable[..., Any],
    function: Callable[..., Any],
    options: Options,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The slow path of `_function`."""
    tensors = list(tensors_in((args, kwargs), set()))
    if _is_torch_function_mode_enabled() or has_torch_function(tensors):
        # Classes and modes that intercept torch functions also intercept this one. They call it again, and are inactive
        # during that call.
        return handle_torch_function(wrapper, tensors, *args, **kwargs)
    if options.vjp is not None and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        from interop.array_gradients import differentiated

        return differentiated(wrapper, function, options.vjp, tensors, args, kwargs)
    call = _Call(function, options)
    try:
        given = []
        for i, one in enumerate(args):
            call.trail = [i]
            given.append(call.argument(one))
        named = {}
        for name, one in kwargs.items():
            call.trail = [name]
            named[name] = call.argument(one)
    except (TypeError, ValueError, RuntimeError) as error:
        call.explain(error)
        raise

    def finish() -> None:
        if options.mutates_args:
            _count_writes(function, options.mutates_args, args, kwargs)
        call.memo = {}  # a container that needed no conversion may now hold arrays
        if call.rebuilt:
            call.write_back()

    try:
        result = function(*given, **named)
    except BaseException as error:  # the function may have changed something first
        try:
            finish()
        except Exception as lost:
            error.add_note(f"with_arrays could not write back all that {name_of(function)} had changed: {lost}")
        raise
    finish()
    return call.result(result)


def _check_mutated(function: Callable[..., Any], mutated: tuple[str | int, ...]) -> None:
    """Reject names and positions that the function does not have, if it has a signature."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    kinds = {one.kind for one in found.values()}
    for one in mutated:
        if isinstance(one, str):
            known = one in found or inspect.Parameter.VAR_KEYWORD in kinds
        else:
            known = 0 <= one < len(found) or inspect.Parameter.VAR_POSITIONAL in kinds
        if not known:
            raise ValueError(
                f"argument 'mutates_args' must contain names or positions of parameters of {name_of(function)}, "
                f"which are {', '.join(found)}; got {one!r}"
            )


def _count_writes(
    function: Callable[..., Any], mutated: tuple[str | int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    values: dict[str | int, Any] = dict(enumerate(args)) | kwargs
    with contextlib.suppress(TypeError, ValueError):  # if the function has no signature, or rejects the call
        signature = inspect.signature(function)
        given = signature.bind(*args, **kwargs).arguments
        values.update(given)
        for i, name in enumerate(signature.parameters):
            if name in given:
                values.setdefault(i, given[name])
    written = tensors_in([values[key] for key in mutated if key in values], set())
    torch.autograd.graph.increment_version([tensor for tensor in written if not tensor.is_inference()])


def _callback(function: Callable[..., Any], options: Options) -> Callable[..., Any]:
    """A function of tensors, wrapped for callers that pass arrays."""

    @functools.wraps(function)
    def callback(*args: Any, **kwargs: Any) -> Any:
        call = _Call(function, options)
        call.unshared = []
        given = [call.result(one) for one in args]
        named = {name: call.result(one) for name, one in kwargs.items()}
        before = [to_numpy(tensor).copy() for _, tensor in call.unshared]
        try:
            result = function(*given, **named)
        finally:
            for (array, tensor), old in zip(call.unshared, before, strict=True):
                new = to_numpy(tensor.detach(), force=True)
                changed = new != old  # only these: writes to other arrays over the same memory must stay
                array[changed] = new[changed]
        back = _Call(function, options)
        back.trail = ["the result"]
        try:
            return back.argument(result)
        except (TypeError, ValueError, RuntimeError) as error:
            back.explain(error)
            raise

    return callback


class _Called:
    """A proxy for a callable object, such as a torch.nn.Module. Calls take arrays; all else goes to the object."""

    __slots__ = ("__wrapped__", "_of_arrays")

    def __init__(self, wrapped: Any, of_arrays: Callable[..., Any]):
        object.__setattr__(self, "__wrapped__", wrapped)
        object.__setattr__(self, "_of_arrays", of_arrays)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.__wrapped__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._of_arrays(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)


class StandIn:
    """A stand-in for a module, a class or an object whose functions take only arrays: see `with_arrays`."""

    __wrapped__: Any
    _interop_options: Options
    _interop_known: dict[str, Any]  # wrapped attributes, by name

    def __init__(self, wrapped: Any, options: Options):
        self.__dict__.update(__wrapped__=wrapped, _interop_options=options, _interop_known={})

    def _interop_result(self, one: Any) -> Any:
        wrapped = self.__wrapped__
        if one is wrapped:  # from methods that can be chained
            return self
        of_class = wrapped if isinstance(wrapped, type) else type(wrapped)
        if type(one) is of_class and not _is_container(one):
            return StandIn(one, self._interop_options)
        return one

    def __reduce__(self) -> tuple[Any, ...]:
        return StandIn, (self.__wrapped__, self._interop_options)

    def __copy__(self) -> "StandIn":
        return StandIn(copy.copy(self.__wrapped__), self._interop_options)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__wrapped__, name)
        if not (callable(value) or isinstance(value, types.ModuleType)):
            result = _Call(getattr, self._interop_options).result(value)
            if result is not value and isinstance(value, (list, dict)):
                return StandIn(value, self._interop_options)  # so that writes reach the original
            return self._interop_result(result)
        known = self._interop_known.get(name)
        if known is None or known[0] != value:
            known = self._interop_known[name] = (value, self._interop_made(value))
        return known[1]

    def _interop_made(self, value: Any) -> Any:
        if isinstance(value, type) and issubclass(value, BaseException):
            return value  # `except` needs the class itself
        if not inspect.isroutine(value):
            return StandIn(value, self._interop_options)
        call = _function(value, self._interop_options)
        if isinstance(self.__wrapped__, types.ModuleType):
            return call
        return functools.wraps(value)(lambda *args, **kwargs: self._interop_result(call(*args, **kwargs)))

    def _interop_call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._interop_result(_function(function, self._interop_options)(*args, **kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        self._interop_call(setattr, self, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return f"with_arrays({self.__wrapped__!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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

    def __instancecheck__(self, one: Any) -> bool:
        return isinstance(one.__wrapped__ if isinstance(one, StandIn) else one, self.__wrapped__)

    def __subclasscheck__(self, one: Any) -> bool:
        return issubclass(one.__wrapped__ if isinstance(one, StandIn) else one, self.__wrapped__)

    def __contains__(self, one: Any) -> bool:
        return bool(self._interop_call(operator.contains, self, one))

    def __iter__(self) -> Iterator[Any]:
        return (_Call(iter, self._interop_options).result(one) for one in self.__wrapped__)

    def __enter__(self) -> Any:
        return self._interop_result(self.__wrapped__.__enter__())

    def __exit__(self, *error: Any) -> Any:
        return self.__wrapped__.__exit__(*error)


def _of_operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    def method(self: StandIn, *others: Any) -> Any:
        return self._interop_call(function, *others, self) if reflected else self._interop_call(function, self, *others)

    return method


for _name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    _operator = getattr(operator, f"__{_name}__")
    setattr(StandIn, f"__{_name}__", _of_operator(_operator))
    setattr(StandIn, f"__r{_name}__", _of_operator(_operator, reflected=True))
for _name in ("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
    setattr(StandIn, f"__{_name}__", _of_operator(getattr(operator, f"__{_name}__")))


def _keep_from_compiler(function: Callable[..., Any], name: str) -> None:
    """Make torch.compile break the graph at this function, and say why."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
        f"interop.with_arrays: {name} works on NumPy arrays, which cannot be part of a graph; with "
        "op='namespace::name' it becomes an operator, which can"
    )


def _skip_frames(function: Callable[..., Any]) -> None:
    """Make torch.compile skip these frames and all below, because it would replace NumPy's functions with torch's."""
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

        set_code_exec_strategy(function.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
    except (ImportError, AttributeError, TypeError):
        return  # a release of torch that breaks the graph more often, with the same results


_skip_frames(_function(len, Options()))  # all wrappers share its code
for _name, _method in vars(StandIn).items():
    if isinstance(_method, types.FunctionType):
        _keep_from_compiler(_method, f"{_name} of a stand-in")
        _skip_frames(_method)
