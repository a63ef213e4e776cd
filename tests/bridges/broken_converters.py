"""Converters that are each broken in one way, to show that the checks of bridge_checks.py detect it.

Each entry of FROM and TO is a function that takes our converter and returns a broken one.
"""

import ctypes
from types import SimpleNamespace

import numpy as np
import torch

_kept = []


def foreign(array, dtype=None, sizes=None, strides=None, offset=0):
    """A tensor over an array's memory that does not keep the array alive."""
    low, high = np.lib.array_utils.byte_bounds(array)
    raw = (ctypes.c_char * max(high - low, 1)).from_address(low) if array.size else bytearray(1)
    flat = torch.frombuffer(raw, dtype=torch.uint8)[: high - low]
    dtype = dtype or getattr(torch, array.dtype.name)
    flat = flat[: len(flat) // dtype.itemsize * dtype.itemsize].view(dtype)
    steps = [stride // array.itemsize for stride in array.strides]
    return flat.as_strided(array.shape if sizes is None else sizes, steps if strides is None else strides, offset)


def native(array):
    """The array with its bytes reinterpreted in native byte order."""
    return array.view(array.dtype.newbyteorder("="))


def writable(array):
    """A writable array over the same memory."""
    return np.ndarray(array.shape, array.dtype, _lie(array), strides=array.strides)


def _lie(array):
    low, high = np.lib.array_utils.byte_bounds(array)
    return (ctypes.c_char * (high - low)).from_address(low)


def leaking(ours):
    def convert(array):
        _kept.append(array)
        return ours(array)

    return convert


def on(condition, wrong):
    """Our converter, but `wrong(ours, given)` if `condition(given)`."""

    def make(ours):
        def convert(given):
            return wrong(ours, given) if condition(given) else ours(given)

        return convert

    return make


def is_array(given):
    return isinstance(given, np.ndarray)


def is_tensor(given):
    return isinstance(given, torch.Tensor)


def arrays(condition):
    return lambda given: is_array(given) and condition(given)


def tensors(condition):
    return lambda given: is_tensor(given) and condition(given)


def dims(number):
    return lambda given: given.ndim == number


def type_name(name):
    return lambda given: given.dtype.name == name


FROM = {
    "no owner": on(arrays(lambda a: a.dtype.name in dir(torch)), lambda ours, a: foreign(a)),
    "leak": leaking,
    "copies": on(arrays(lambda a: True), lambda ours, a: ours(a).clone()),
    "0-d as 1-d": on(arrays(dims(0)), lambda ours, a: ours(a).view(1)),
    "1 element as 0-d": on(arrays(lambda a: a.size == 1), lambda ours, a: ours(a).view(())),
    "byte order ignored": on(arrays(lambda a: not a.dtype.isnative), lambda ours, a: ours(native(a))),
    "byte order copied": on(arrays(lambda a: not a.dtype.isnative), lambda ours, a: ours(a.astype(a.dtype.name))),
    "negative strides copied": on(arrays(lambda a: min(a.strides, default=0) < 0), lambda ours, a: ours(a.copy())),
    "negative strides taken for positive": on(
        arrays(lambda a: a.ndim == 1 and a.strides[0] < 0), lambda ours, a: ours(a[::-1])
    ),
    "misaligned copied": on(arrays(lambda a: not a.flags.aligned), lambda ours, a: ours(a.copy())),
    "odd strides rounded": on(
        arrays(lambda a: a.ndim == 1 and a.itemsize and a.strides[0] % a.itemsize), lambda ours, a: ours(a.copy())
    ),
    "strides ignored": on(
        arrays(lambda a: a.size and min(a.strides, default=1) > 0 and not a.flags.c_contiguous),
        lambda ours, a: ours(a.copy()),
    ),
    "axes reversed": on(arrays(lambda a: a.ndim > 1), lambda ours, a: ours(a).permute(*reversed(range(a.ndim)))),
    "broadcast materialised": on(
        arrays(lambda a: 0 in a.strides and a.flags.writeable), lambda ours, a: ours(a.copy())
    ),
    "read-only ignored": on(arrays(lambda a: not a.flags.writeable), lambda ours, a: ours(writable(a))),
    "read-only copied": on(arrays(lambda a: not a.flags.writeable), lambda ours, a: ours(a.copy())),
    "unsigned as signed": on(arrays(type_name("uint16")), lambda ours, a: ours(a.view(np.int16))),
    "bool as uint8": on(arrays(type_name("bool")), lambda ours, a: ours(a.view(np.uint8))),
    "half as bfloat16": on(arrays(type_name("float16")), lambda ours, a: ours(a).view(torch.bfloat16)),
    "double as float": on(arrays(type_name("float64")), lambda ours, a: ours(a).float()),
    "complex conjugated": on(arrays(type_name("complex64")), lambda ours, a: ours(a).conj()),
    "longdouble rounded": on(arrays(lambda a: a.dtype == np.longdouble), lambda ours, a: ours(a.astype("f8"))),
    "dates as numbers": on(arrays(lambda a: a.dtype.kind in "Mm"), lambda ours, a: ours(a.view(np.int64))),
    "objects as numbers": on(arrays(lambda a: a.dtype.kind == "O"), lambda ours, a: ours(np.zeros(a.shape))),
    "empty flattened": on(arrays(lambda a: a.size == 0), lambda ours, a: ours(a).reshape(0)),
    "requires grad": on(arrays(type_name("float32")), lambda ours, a: ours(a).requires_grad_()),
    "lists converted": on(lambda given: not is_array(given), lambda ours, given: ours(np.asarray(given))),
    "resizable": on(arrays(lambda a: True), lambda ours, a: torch.empty(0, dtype=ours(a).dtype).set_(ours(a).clone())),
}


def detached(ours, tensor):
    return ours(tensor.detach())


def shifted(ours, tensor):
    """Drops the storage offset."""
    return ours(tensor.as_strided(tensor.shape, tensor.stride(), 0))


def unpinned(ours, tensor):
    """An array over memory that the storage may still reallocate."""
    array = ours(tensor.clone())
    made = np.ndarray(array.shape, array.dtype, _raw(tensor), strides=array.strides)
    made.flags.writeable = array.flags.writeable
    return made


def _raw(tensor):
    holder = (ctypes.c_char * max(tensor.untyped_storage().nbytes(), 1)).from_address(tensor.data_ptr())
    holder.tensor = tensor
    return holder


def holds(ours, tensor):
    """An array that keeps the tensor's Python object alive."""
    array = ours(tensor)
    return np.asarray(_Holder(array, tensor))


class _Holder(SimpleNamespace):
    def __init__(self, array, tensor):
        super().__init__(array=array, tensor=tensor, __array_interface__=array.__array_interface__)


def raw_bits(ours, tensor):
    """Zeros of the tensor's shape, in place of its values."""
    real = tensor.is_complex() or tensor.is_neg()
    return np.zeros(tensor.shape, np.complex64 if real else np.float32)


TO = {
    "no owner": on(tensors(lambda t: t.numel() > 0), lambda ours, t: _unowned(ours, t)),
    "leak": leaking,
    "copies": on(tensors(lambda t: True), lambda ours, t: ours(t).copy()),
    "0-d as 1-d": on(tensors(dims(0)), lambda ours, t: ours(t).reshape(1)),
    "neg bit ignored": on(tensors(lambda t: t.is_neg()), raw_bits),
    "neg bit resolved": on(tensors(lambda t: t.is_neg()), lambda ours, t: ours(t.resolve_neg())),
    "conj bit ignored": on(tensors(lambda t: t.is_conj()), raw_bits),
    "conj bit resolved": on(tensors(lambda t: t.is_conj()), lambda ours, t: ours(t.resolve_conj())),
    "gradient lost": on(tensors(lambda t: t.requires_grad), detached),
    "gradient lost in a graph": on(tensors(lambda t: t.grad_fn is not None), detached),
    "sparse densified": on(tensors(lambda t: t.is_sparse), lambda ours, t: ours(t.to_dense())),
    "quantized as integers": on(tensors(lambda t: t.is_quantized), lambda ours, t: ours(t.int_repr())),
    "meta as zeros": on(tensors(lambda t: t.is_meta), raw_bits),
    "sizes trusted": on(
        tensors(lambda t: t.layout == torch.strided and not t.is_nested and t.untyped_storage().nbytes() == 4),
        raw_bits,
    ),
    "offset ignored": on(tensors(lambda t: t.layout == torch.strided and t.storage_offset() > 0), shifted),
    "strides ignored": on(
        tensors(lambda t: t.layout == torch.strided and not t.is_nested and not t.is_contiguous()),
        lambda ours, t: ours(t.contiguous()),
    ),
    "axes reversed": on(tensors(lambda t: t.layout == torch.strided and t.ndim > 1), lambda ours, t: ours(t).T),
    "always writable": on(
        tensors(lambda t: t.layout == torch.strided and 0 in t.stride() and t.numel()), lambda ours, t: _forced(ours, t)
    ),
    "never writable": on(tensors(lambda t: True), lambda ours, t: _frozen(ours(t))),
    "unsigned as signed": on(tensors(lambda t: t.dtype == torch.uint16), lambda ours, t: ours(t.view(torch.int16))),
    "bool as uint8": on(tensors(lambda t: t.dtype == torch.bool), lambda ours, t: ours(t).view(np.uint8)),
    "byte-swapped": on(tensors(lambda t: t.dtype == torch.int32), lambda ours, t: ours(t).view(">i4")),
    "empty flattened": on(
        tensors(lambda t: t.layout == torch.strided and t.numel() == 0), lambda ours, t: ours(t).ravel()
    ),
    "not pinned": on(tensors(lambda t: t.dtype == torch.int64 and t.numel() == 64), unpinned),
    "keeps the tensor": on(tensors(lambda t: t.dtype == torch.int64 and t.ndim == 1), holds),
    "complex32 widened": on(tensors(lambda t: t.dtype == torch.complex32), lambda ours, t: ours(t.to(torch.complex64))),
    "lists converted": on(lambda given: not is_tensor(given), lambda ours, given: ours(torch.as_tensor(given or []))),
}


def _unowned(ours, tensor):
    array = ours(tensor)
    holder = np.ndarray(array.shape, array.dtype, _lie(array), strides=array.strides)
    holder.flags.writeable = array.flags.writeable
    return holder


def _forced(ours, tensor):
    array = ours(tensor)
    return np.ndarray(array.shape, array.dtype, _lie(array), strides=array.strides)


def _frozen(array):
    array.flags.writeable = False
    return array
