"""One call of a NumPy function with tensors: `of_tensors` wraps the function, and `Call` converts."""

import bisect
import contextlib
import copy
import functools
import inspect
import operator
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor
from torch._C import _is_torch_function_mode_enabled
from torch.overrides import handle_torch_function, has_torch_function

from interop._bridges import Unfinished, call_with_arrays, to_numpy
from interop.arrays.containers import (
    fill,
    has_constructor,
    is_container,
    is_dataclass,
    items_of,
    merged,
    same_items,
    tensors_in,
    tuple_like,
)
from interop.arrays.conversion import (
    address,
    geometry,
    is_exactly,
    is_over,
    sharing,
    tensor_of,
    torch_lacks,
    unwatched,
    view_of,
)
from interop.arrays.gradients import apart, differentiated, is_watched
from interop.arrays.options import Options, name_of

__all__ = [
    "SCALARS",
    "Call",
    "WeakReference",
    "Wrapping",
    "check_mutated",
    "keep_from_compiler",
    "of_tensors",
    "skip_frames",
]

SCALARS: frozenset[type] = frozenset({int, float, complex, bool, str, bytes, type(None), slice, np.float64, np.int64})
"""Types whose instances contain neither tensors nor arrays."""

RESULT = "the result"
"""Begins the path to an item of the result."""

PLAIN: frozenset[type] = SCALARS | {ndarray}


class Wrapping:
    """An object that a function receives as what it wraps; see `interop.arrays.stand_in`."""

    __wrapped__: Any


def of_tensors(function: Callable[..., Any], options: Options) -> Callable[..., Any]:
    """The wrapper of `function` that takes tensors.

    Most calls pass only numbers and plain ``torch.Tensor`` objects, which the wrapper converts itself. All others take
    the slow path, `Call`.
    """
    may_hold = _may_hold_or_be_called if options.callbacks else _may_hold
    has_vjp = options.vjp is not None
    scalars = frozenset() if has_vjp else SCALARS

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if options.mutates_args:
            return _call(this() or of_tensors(function, options), function, options, args, kwargs)
        found = call_with_arrays(function, args, kwargs, may_hold, scalars, has_vjp)
        if type(found) is not Unfinished:
            return found
        if found.given is None:
            return _call(this() or of_tensors(function, options), function, options, args, kwargs)
        shared = [(array, one) for array, one in zip(found.given, args, strict=True) if array is not one]
        shared += [(array, kwargs[name]) for name, array in (found.named or {}).items() if array is not kwargs[name]]
        if type(found.result) is ndarray and options.may_copy and options.vjp is None:
            return tensor_of(found.result, shared, True)
        call = Call(function, options)
        call.shared = {id(array): (array, one) for array, one in shared}
        return call.returned(found.result, args, kwargs)

    this = WeakReference(wrapper)  # a name of its own would be a cycle, which keeps the function's object alive
    keep_from_compiler(wrapper, name_of(function))
    return wrapper


def _may_hold(one: Any) -> bool:
    """Whether an object may contain tensors, so that its items are checked."""
    return isinstance(one, (Tensor, list, tuple, dict, Wrapping)) or is_dataclass(one)


def _may_hold_or_be_called(one: Any) -> bool:
    return callable(one) or _may_hold(one)


class WeakReference:
    """A weak reference that can be pickled, as joblib does with functions. The copy refers to nothing."""

    __slots__ = ("_reference",)

    def __init__(self, one: Any = None):
        self._reference = None if one is None else weakref.ref(one)

    def __call__(self) -> Any:
        return None if self._reference is None else self._reference()

    def __reduce__(self) -> tuple[Any, ...]:
        return WeakReference, ()


class Call:
    """One call: the conversions of its arguments and of its result."""

    def __init__(self, function: Callable[..., Any], options: Options):
        self.function, self.options = function, options
        self.shared: dict[int, tuple[Any, Tensor]] = {}  # arrays that share memory, and their tensors, by id
        self.copied: dict[int, tuple[Any, Tensor, Any]] = {}  # copies, their tensors and geometry
        self.arrays: dict[int, Any] = {}  # by the tensor's id
        # Each container, its items, the converted container, and its items.
        self.rebuilt: list[tuple[Any, list[tuple[Any, Any]], Any, list[tuple[Any, Any]]]] = []
        self.unshared: list[tuple[Any, Tensor]] | None = None  # writable arrays, and tensors that copy them
        self.made: dict[int, tuple[Any, Any]] = {}  # the results' arrays and their tensors
        self.functions: dict[int, tuple[Any, Any]] = {}  # callbacks and their wrappers
        self.places: list[tuple[int, int]] = []  # the start of each shared storage, and its key in `shared`
        self.memo: dict[int, tuple[Any, Any]] = {}
        self.device: torch.device | None = None  # the device of the results
        self.trail: list[Any] = []  # the path to the current argument or item

    def argument(self, one: Any) -> Any:
        """The value that the function receives."""
        if type(one) in PLAIN:
            return one
        if isinstance(one, Tensor):
            return self.array(one)
        if isinstance(one, Wrapping):
            return one.__wrapped__
        if is_container(one):
            return self.mapped(one, self.data if has_constructor(one) else self.argument, PLAIN)
        if self.options.callbacks and callable(one) and not isinstance(one, type):
            if id(one) not in self.functions:
                made: Any = _callback(one, self.options, weakref.ref(self))
                if not (inspect.isroutine(one) or isinstance(one, functools.partial)):
                    made = _Called(one, made)
                self.functions[id(one)] = (one, made)
            return self.functions[id(one)][1]
        return one

    def data(self, one: Any) -> Any:
        """The same, except for functions, which the class of a tuple may need as they are."""
        is_function = callable(one) and not (isinstance(one, Wrapping) or is_container(one))
        return one if is_function else self.argument(one)

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
            self.copied[id(array)] = (array, tensor, geometry(array))
        else:
            array = to_numpy(plain)
            self.shared[id(array)] = (array, tensor)
        self.arrays[id(tensor)] = array
        return array

    def mapped(self, container: Any, convert: Callable[[Any], Any], plain: frozenset[type]) -> Any:
        """A container of the converted items: `container` itself if `convert` changes none of them."""
        if id(container) in self.memo:
            return self.memo[id(container)][1]
        items = list(items_of(container))
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
        if same_items(new, items):
            made = container
        elif fixed:
            made = tuple_like(container, [value for _, value in new], convert)
        elif made is container and convert == self.result:
            pass  # somebody else's, and it cannot be copied
        elif made is container:
            raise TypeError(
                f"argument 'tensor' must be in a container that can be copied, and copy.copy of a "
                f"{type(container).__name__} gives the same object; pass a list or a dict"
            )
        else:
            fill(made, new)
            self.rebuilt.append((container, items, made, new))
        self.memo[id(container)] = (container, made)
        return made

    def write_back(self) -> None:
        """Apply the function's changes to our lists, dicts and dataclasses to the caller's."""
        rebuilt, self.rebuilt = self.rebuilt, []
        self.memo = {id(made): (made, container) for container, _, made, _ in rebuilt}
        for container, items, made, new in rebuilt:
            now = list(items_of(made))
            if not same_items(now, new):
                # Items that the function has not replaced stay the caller's own: a Parameter, an array, a graph.
                before = {id(value): own for (_, own), (_, value) in zip(items, new, strict=True)}
                back = [before[id(one)] if id(one) in before else self.result(one) for _, one in now]
                fill(container, merged(container, items, [value for _, value in new], now, back))
            fields = {name for name, _ in now} if is_dataclass(made) else set()
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
        i = bisect.bisect_right(self.places, address(array), key=operator.itemgetter(0))
        return [self.shared[self.places[i - 1][1]]] if i else []

    def result(self, one: Any) -> Any:
        """The converted result."""
        kind = type(one)
        if isinstance(one, np.ndarray):
            if id(one) not in self.made:
                self.made[id(one)] = (one, self.result_of_array(one))
            return self.made[id(one)][1]
        if isinstance(one, Tensor):
            return self.result_of_tensor(one)
        for function, made in self.functions.values():
            if made is one:
                return function
        if self.options.vjp is not None and isinstance(one, (float, complex, np.inexact)):
            return torch.from_numpy(np.array(one)).to(self.device or "cpu")
        if kind in SCALARS or not is_container(one):
            return one
        return self.mapped(one, self.result, frozenset() if self.options.vjp else SCALARS)

    def result_of_array(self, array: Any) -> Any:
        if id(array) in self.copied and self.copied[id(array)][2] == geometry(array):
            return unwatched(self.copied[id(array)][1])
        tensor = tensor_of(array, self.near(array), self.options.may_copy)
        if not isinstance(tensor, Tensor):
            return tensor
        if self.unshared is not None and array.flags.writeable and torch_lacks(array):
            self.unshared.append((array, tensor))
        of_cpu = self.device is None or any(tensor is known for _, known in self.shared.values())
        return tensor if of_cpu else tensor.to(self.device)

    def result_of_tensor(self, tensor: Tensor) -> Tensor:
        """A tensor that the function has made: in the memory of an argument, a view of the argument.

        So the versions agree if the function calls another one that is wrapped.
        """
        if type(tensor) is not Tensor or tensor.requires_grad or not tensor.is_cpu or tensor.layout != torch.strided:
            return tensor
        with contextlib.suppress(TypeError, ValueError, RuntimeError):  # no memory that could be an argument's
            begin = tensor.data_ptr()
            for known, own in self.shared.values():
                memory = own.untyped_storage()
                is_inside = memory.data_ptr() <= begin < memory.data_ptr() + memory.nbytes()
                if is_inside and memory._cdata != tensor.untyped_storage()._cdata:
                    array = to_numpy(tensor)
                    found = view_of(known if is_over(array, known) else array, known, own)
                    if found is not None:
                        return found
        return tensor

    def relate(self, arrays: list[Any]) -> None:
        """Make the results that have elements in common views of one tensor.

        The tensor is that of the array in which the others are, or of their base.
        """
        for group in sharing([one for one in {id(one): one for one in arrays}.values() if _is_numeric(one)]):
            bounds = [np.lib.array_utils.byte_bounds(one) for one in group]
            low, high = min(begin for begin, _ in bounds), max(end for _, end in bounds)
            # First the arguments' own arrays, which come back as the arguments.
            for whole in sorted([*group, *(one.base for one in group)], key=lambda one: id(one) not in self.shared):
                if not isinstance(whole, ndarray) or not whole.size or not _is_numeric(whole):
                    continue
                begin, end = np.lib.array_utils.byte_bounds(whole)
                if low < begin or end < high:
                    continue
                with contextlib.suppress(TypeError, ValueError):  # read-only memory, which would be copied
                    tensor = tensor_of(whole, self.near(whole), may_copy=False)
                    views = [view_of(one, whole, tensor) for one in group] if type(tensor) is Tensor else []
                    if views and all(isinstance(one, Tensor) for one in views):
                        self.made.update((id(one), (one, view)) for one, view in zip(group, views, strict=True))
                        break

    def returned(self, one: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The converted result of the call."""
        self.trail = [RESULT]
        try:
            if is_container(one) and self.device is None:
                self.relate(list(tensors_in(one, set(), ndarray)))
            made = self.result(one)
        except (TypeError, ValueError, RuntimeError) as error:
            self.explain(error)
            raise
        return made if self.options.vjp is None else apart(made, (args, kwargs))

    def explain(self, error: Exception) -> None:
        """Name the argument in an error."""
        first, *rest = self.trail
        name = first if isinstance(first, str) else _parameters(self.function).get(first, first)
        what = first if first == RESULT else f"argument {name!r}"
        where = f"{what}{''.join(f'[{key!r}]' for key in rest)} of {name_of(self.function)}"
        error.args = (re.sub("argument '(tensor|array)'", lambda _: where, str(error), count=1),)


def _is_numeric(array: Any) -> bool:
    """Whether a tensor may share the memory."""
    return array.dtype.kind in "biufc" and not isinstance(array, np.ma.MaskedArray) and not torch_lacks(array)


def _parameters(function: Callable[..., Any]) -> dict[int, str]:
    """The names of positional parameters; empty if the function has no signature."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # from some compiled functions
        return {}
    return {i: one.name for i, one in enumerate(found) if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)}


def _call(
    wrapper: Callable[..., Any],
    function: Callable[..., Any],
    options: Options,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The slow path of `of_tensors`."""
    tensors = list(tensors_in((args, kwargs), set()))
    if _is_torch_function_mode_enabled() or has_torch_function(tensors):
        # Classes and modes that intercept torch functions also intercept this one. They call it again, and are inactive
        # during that call.
        return handle_torch_function(wrapper, tensors, *args, **kwargs)
    if options.vjp is not None and any(is_watched(tensor) for tensor in tensors):
        return differentiated(wrapper, function, options.vjp, tensors, args, kwargs)
    call = Call(function, options)
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
    return call.returned(result, args, kwargs)


def check_mutated(function: Callable[..., Any], mutated: tuple[str | int, ...]) -> None:
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


def _callback(function: Callable[..., Any], options: Options, outer: "Callable[[], Call | None]") -> Callable[..., Any]:
    """A function of tensors, wrapped for callers that pass arrays. `outer` is the call that it is an argument of."""

    @functools.wraps(function)
    def callback(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, options)
        call.unshared = []
        within = outer()
        if within is not None:  # not after its end
            # With the memory and the version of the argument, but not the tensor itself, whose shape may change.
            call.shared = {
                key: (array, tensor.detach()) for key, (array, tensor) in within.shared.items() if _is_ordinary(tensor)
            }
        given = [call.result(one) for one in args]
        named = {name: call.result(one) for name, one in kwargs.items()}
        before = [to_numpy(tensor).copy() for _, tensor in call.unshared]
        try:
            result = function(*given, **named)
        finally:
            for (array, tensor), old in zip(call.unshared, before, strict=True):
                new = to_numpy(tensor.detach(), force=True)
                if new.shape != old.shape:
                    raise ValueError(
                        f"{name_of(function)}, a callback, must not resize its argument, whose array has strides or a "
                        f"byte order that torch lacks; got {new.shape} for {old.shape}"
                    )
                new = new.astype(old.dtype, copy=False)  # after an assignment to its .data
                # Only these: writes to other arrays over the same memory must stay. As bytes, NaN equals itself, and
                # 0.0 differs from -0.0.
                changed = (_bytes_of(new) != _bytes_of(old)).any(-1)
                array[changed] = new[changed]
        back = Call(function, options)
        back.trail = [RESULT]
        for array, tensor in call.made.values():  # an argument that is returned is the caller's array
            if is_exactly(tensor, array):
                back.arrays[id(tensor)] = array
        try:
            return back.argument(result)
        except (TypeError, ValueError, RuntimeError) as error:
            back.explain(error)
            raise

    return callback


def _bytes_of(array: Any) -> Any:
    """A copy of the elements as bytes, with one more axis."""
    return np.array(array, order="C").reshape(-1).view(np.uint8).reshape(*array.shape, array.itemsize)


def _is_ordinary(tensor: Tensor) -> bool:
    return tensor.is_inference() == torch.is_inference_mode_enabled()


class _Called:
    """A proxy for a callable object, such as a torch.nn.Module. Calls take arrays; all else goes to the object."""

    __slots__ = ("__wrapped__", "_of_arrays")

    def __init__(self, wrapped: Any, of_arrays: Callable[..., Any]):
        object.__setattr__(self, "__wrapped__", wrapped)
        object.__setattr__(self, "_of_arrays", of_arrays)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.__wrapped__)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._of_arrays(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)


def keep_from_compiler(function: Callable[..., Any], name: str) -> None:
    """Make torch.compile break the graph at this function, and say why."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
        f"interop.with_arrays: {name} works on NumPy arrays, which cannot be part of a graph; with "
        "op='namespace::name' it becomes an operator, which can"
    )


def skip_frames(function: Callable[..., Any]) -> None:
    """Make torch.compile skip these frames and all below, because it would replace NumPy's functions with torch's."""
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

        set_code_exec_strategy(function.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
    except (ImportError, AttributeError, TypeError):
        return  # a release of torch that breaks the graph more often, with the same results


skip_frames(of_tensors(len, Options()))  # all wrappers share its code
