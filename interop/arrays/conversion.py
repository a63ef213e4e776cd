"""The tensor of an array: `from_array`, for any library's arrays, and `tensor_of`, for the results of a function."""

import sys
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from numpy.lib.array_utils import byte_bounds
from torch import Tensor

from interop._bridges import Taken, from_buffer, from_cuda_array_interface, from_dlpack, from_numpy, to_numpy

__all__ = [
    "address",
    "copied",
    "from_array",
    "geometry",
    "is_exactly",
    "is_over",
    "tensor_of",
    "torch_lacks",
    "unwatched",
    "view_of",
]


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
    if isinstance(obj, (np.datetime64, np.timedelta64)):
        obj = np.asarray(obj)  # their buffers do not say what the bytes are
    kind = type(obj)
    if isinstance(obj, ndarray) and copy is not False and torch_lacks(obj):
        obj, copy = copied(obj), None
    if not isinstance(obj, Tensor) and hasattr(kind, "__dlpack__"):
        return from_dlpack(obj, device=device, copy=copy, on_readonly="share" if copy else on_readonly)  # type: ignore[arg-type]
    # A copy that the policy makes also counts as a copy.
    readonly: Any = "share" if copy else "raise" if copy is False and on_readonly == "copy" else on_readonly
    if isinstance(obj, Tensor):
        tensor = obj
    elif hasattr(obj, "__cuda_array_interface__"):
        tensor = from_cuda_array_interface(obj, on_readonly=readonly)
    elif (strides := _strides_of_buffer(obj)) is not None:
        if copy is not False and any(one < 0 for one in strides):
            tensor, copy = _of_numpy(copied(np.asarray(memoryview(Taken(obj)))), "raise"), None
        else:
            tensor = from_buffer(obj, on_readonly=readonly)
    elif _has_numpys_interface(obj):
        array = np.array(obj, copy=False if copy is False else None, subok=True)
        if not isinstance(array, np.ma.MaskedArray):  # of which from_numpy checks the mask
            array = np.asarray(array)
        if copy is not False and torch_lacks(array):
            array, copy, readonly = copied(array), None, "raise"
        tensor = _of_numpy(array, readonly)
    else:
        raise TypeError(
            "argument 'obj' must support DLPack, the CUDA array interface, the buffer protocol or NumPy's array "
            f"interface, got {kind.__name__}; torch.tensor(obj) copies lists and numbers"
        )
    there = tensor.device if device is None else torch.empty(0, device=_device_of(device)).device
    if copy is False and tensor.device != there:
        raise ValueError(
            f"argument 'copy' is False, but a copy is necessary to move 'obj' from {tensor.device} to {there}"
        )
    if tensor is obj and (copy or tensor.device != there):
        _check_memory(tensor)
    made = tensor.to(there, copy=copy is True)
    if tensor.is_cuda and made is not tensor and tensor is not obj and not torch.cuda.is_current_stream_capturing():
        torch.cuda.current_stream(tensor.device).synchronize()  # another library may free its memory once `tensor` ends
    return made


def _device_of(device: Any) -> torch.device:
    """The device that a caller named."""
    expected = "argument 'device' must be a torch.device, its name or its index"
    try:
        return torch.device(device)
    except TypeError:
        raise TypeError(f"{expected}, got {type(device).__name__}") from None
    except RuntimeError as error:
        message = str(error).partition("\n")[0]
        raise ValueError(f"{expected}, got {device!r}: {message}") from None


def _check_memory(tensor: Tensor) -> None:
    """Raise ValueError for a tensor whose storage was resized to fewer bytes: torch itself would copy what follows."""
    if (
        type(tensor) not in (Tensor, torch.nn.Parameter)
        or tensor.layout is not torch.strided
        or tensor.device.type not in ("cpu", "cuda")  # storages of others may have no bytes
        or tensor.is_nested
    ):
        return
    try:
        available = tensor.untyped_storage().nbytes()
    except NotImplementedError:  # of a tensor that a transform of torch.func wraps
        return
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    needed = (tensor.storage_offset() + last + 1) * tensor.element_size() if tensor.numel() else 0
    if needed > available:
        raise ValueError(
            f"argument 'obj' must lie within its storage of {available} bytes, got sizes {list(tensor.shape)}, strides "
            f"{list(tensor.stride())} and offset {tensor.storage_offset()}; its storage was resized"
        )


def torch_lacks(array: ndarray[Any, Any]) -> bool:
    """Whether no tensor can have the array's strides, alignment or byte order."""
    flags, itemsize = array.flags, array.itemsize or 1  # from_dlpack raises for elements of no bytes
    strides = (stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1)
    fits = flags.aligned and array.dtype.isnative and all(one >= 0 and one % itemsize == 0 for one in strides)
    if isinstance(array, np.ma.MaskedArray) and (array.dtype.names or np.ma.is_masked(array)):
        return False  # a copy would drop the mask
    return not fits


def copied(array: ndarray[Any, Any]) -> ndarray[Any, Any]:
    """A copy with a layout and a byte order that a tensor can have."""
    low, high = byte_bounds(array)
    if array.size and (low < 0 or high > 2 * sys.maxsize + 2):  # the strides are wrong: NumPy would read there
        raise ValueError(
            f"argument 'obj' must lie within the address space, got shape {array.shape} with strides {array.strides}"
        )
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _of_numpy(array: ndarray[Any, Any], on_readonly: Any) -> Tensor:
    """The tensor of an array that stands for the argument of `from_array`."""
    try:
        return from_numpy(array, on_readonly=on_readonly)
    except (TypeError, ValueError) as error:
        error.args = (str(error).replace("argument 'array'", "argument 'obj'", 1),)
        raise


def _strides_of_buffer(obj: Any) -> tuple[int, ...] | None:
    """The strides of a buffer, in bytes; None if the object exports none."""
    try:
        with memoryview(Taken(obj)) as view:
            return view.strides
    except TypeError:
        return None
    except (BufferError, ValueError):  # from_buffer explains it
        return ()


def _has_numpys_interface(obj: Any) -> bool:
    """Whether NumPy finds an interface. As NumPy does, this asks the object and not its type."""
    names = ("__array_interface__", "__array_struct__", "__array__")
    return not isinstance(obj, type) and any(hasattr(obj, name) for name in names)


def tensor_of(array: Any, shared: list[tuple[Any, Tensor]], may_copy: bool) -> Any:
    """The result for an array: a tensor if torch supports its dtype."""
    if isinstance(array, np.ma.MaskedArray):
        return array
    for known, tensor in shared:
        # An array without a base owns its memory, unless it is empty.
        found = view_of(array, known, tensor) if array is known or array.base is not None else None
        if found is not None:
            return found
    try:
        return from_numpy(array)
    except TypeError:
        return array
    except ValueError:
        if not may_copy:
            raise
        return from_numpy(copied(array))


def sharing(arrays: list[ndarray[Any, Any]]) -> list[list[ndarray[Any, Any]]]:
    """The groups of arrays that have elements in common, each of at least two.

    Of many arrays over the same addresses, each is compared only with some.
    """
    groups: dict[int, list[ndarray[Any, Any]]] = {id(one): [one] for one in arrays}
    before: list[tuple[int, ndarray[Any, Any]]] = []
    bounds = [(*np.lib.array_utils.byte_bounds(one), one) for one in arrays if one.size]
    for low, high, array in sorted(bounds, key=lambda one: (one[0], -one[1])):
        before = [(end, one) for end, one in before if end > low][-8:]
        for _, one in before:
            if groups[id(one)] is not groups[id(array)] and _share(one, array):
                joined = groups[id(one)] + groups[id(array)]
                groups.update((id(each), joined) for each in joined)
        before.append((high, array))
    return [group for group in {id(group): group for group in groups.values()}.values() if len(group) > 1]


def _share(one: ndarray[Any, Any], other: ndarray[Any, Any]) -> bool:
    """Whether two arrays have an element in common; also if that takes too long to find out."""
    try:  # views of the plain class: another one may have its own shares_memory
        return np.shares_memory(one.view(ndarray), other.view(ndarray), max_work=1000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def unwatched(tensor: Tensor) -> Tensor:
    """The tensor outside of autograd's graph."""
    return tensor.detach() if tensor.requires_grad else tensor


def geometry(array: Any) -> tuple[Any, ...]:
    """What a function may change of an array without another array over the same memory."""
    return array.shape, array.strides, array.dtype


def is_over(array: Any, other: Any) -> bool:
    """Whether two arrays have the same memory and geometry. The function may have given the tensor other memory."""
    if geometry(array) != geometry(other):
        return False
    return array.size == 0 or address(array) == address(other)


def is_exactly(tensor: Any, array: Any) -> bool:
    """Whether a tensor is what an array over the same memory still converts to."""
    if type(tensor) is not Tensor or tensor.requires_grad:
        return False
    try:
        return is_over(array, to_numpy(tensor))
    except (TypeError, ValueError, RuntimeError):
        return False


def address(array: Any) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def view_of(array: Any, known: Any, tensor: Tensor) -> Tensor | None:
    """An argument's tensor, or a view of it, for an array in its memory; None for other memory or other views.

    `known` is the argument's array. The function may have changed its shape, strides or dtype.
    """
    plain = unwatched(tensor)
    if array is known and is_over(array, to_numpy(tensor.detach())):
        return plain
    storage = tensor.untyped_storage()
    begin, itemsize = storage.data_ptr(), array.itemsize
    low, high = np.lib.array_utils.byte_bounds(array)
    if array.nbytes == 0 or low < begin or high > begin + storage.nbytes() or (low - begin) % itemsize:
        return None
    if torch_lacks(array):
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
