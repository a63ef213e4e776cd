"""After ``import interop.numba``, functions that Numba compiles take tensors as arrays.

Without the import, and with the buffer protocol enabled, they take tensors as buffers, which have fewer attributes and
methods in Numba. Compiled functions return arrays. A function with explicit signatures, ``@njit("f8(f8[:])")``, takes
only arrays; `interop.with_arrays` lets it take tensors. A list of tensors is for reading: after a function has appended
to one, the caller's list has arrays.
"""

from typing import Any

import torch
from numba import typeof
from numba.core import cgutils, types
from numba.extending import NativeValue, lower_cast, models, register_model, typeof_impl, unbox

from interop._bridges import to_numpy

__all__ = ["TensorType"]


class TensorType(types.Array):
    """Numba's type for a ``torch.Tensor`` whose memory `to_numpy` can share: an array in every respect."""

    def __init__(self, array: types.Array):
        super().__init__(array.dtype, array.ndim, array.layout, not array.mutable, f"Tensor({array})", array.aligned)
        self.array = array


register_model(TensorType)(models.ArrayModel)


@typeof_impl.register(torch.Tensor)
def _typeof(tensor: torch.Tensor, _: Any) -> TensorType:
    return TensorType(typeof(to_numpy(tensor)))


@unbox(TensorType)
def _unbox(kind: TensorType, tensor: Any, context: Any) -> NativeValue:
    """An array that is made for the call keeps the memory alive, and Numba's own reference keeps the array alive."""
    builder, api = context.builder, context.pyapi
    converter = api.unserialize(api.serialize_object(to_numpy))
    array = api.call_function_objargs(converter, [tensor])
    api.decref(converter)
    native = cgutils.alloca_once_value(builder, context.context.get_constant_null(kind))
    failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
    with cgutils.if_likely(builder, cgutils.is_not_null(builder, array)):
        unboxed = context.unbox(kind.array, array)
        builder.store(unboxed.value, native)
        builder.store(unboxed.is_error, failed)
        api.decref(array)
    return NativeValue(builder.load(native), is_error=builder.load(failed))


@lower_cast(TensorType, types.Array)
def _cast(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return value  # the types differ only in name
