"""Run functions written in Cython under the transforms of torch.func, which accept only Python classes."""

import functools
import itertools
from typing import Any

import torch
from torch._C._functorch import TransformType, get_interpreter_stack, get_unwrapped, is_batchedtensor
from torch._functorch.autograd_function import WrappedCtx, custom_function_call
from torch.autograd import forward_ad

from interop import _core


class _Call:
    """One call of a function. `forward` fills it in, and each level of transforms reads what to save from it."""

    def __init__(self, capsule: object) -> None:
        self.capsule: object = capsule
        self.record: object = None
        self.kept: tuple[int, ...] = ()
        self.changed: tuple[int, ...] = ()
        self.constant: tuple[int, ...] = ()
        self.materialize = True


def _like(ctx: Any, output: torch.Tensor, is_constant: bool) -> tuple[torch.Size, torch.dtype, torch.device] | None:
    """The shape, dtype and device of the zero tangent that torch requires of an output; None if it can have none."""
    # torch's generated vmap rule loses the marks (non-differentiable) of batched tensors.
    is_marked = is_constant and not (isinstance(ctx, WrappedCtx) and is_batchedtensor(output))
    can_have_one = output.is_floating_point() or output.is_complex()
    return (output.shape, output.dtype, output.device) if can_have_one and not is_marked else None


class _Applied(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(call: _Call, *tensors: Any) -> Any:
        found = _core.transformed_forward(call.capsule, tensors)
        call.record, outputs, call.kept, call.changed, call.constant, call.materialize = found
        return outputs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        call, *tensors = inputs
        everything = (*tensors, *output, None)
        kept = [everything[place] for place in call.kept]
        ctx.record = call.record
        ctx.like = [
            _like(ctx, one, len(tensors) + i in call.constant) if isinstance(one, torch.Tensor) else None
            for i, one in enumerate(output)
        ]
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)
        ctx.mark_dirty(*(everything[place] for place in call.changed))
        ctx.mark_non_differentiable(*(everything[place] for place in call.constant))
        ctx.set_materialize_grads(call.materialize)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *_core.transformed_backward(ctx.record, ctx.saved_tensors, ctx.needs_input_grad[1:], grads)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        found = _core.transformed_jvp(ctx.record, ctx.saved_tensors, tangents[1:])
        given = itertools.chain(found, itertools.repeat(None))
        return tuple(
            torch.zeros(like[0], dtype=like[1], device=like[2]) if one is None and like else one
            for one, like in zip(given, ctx.like, strict=False)
        )


@functools.cache
def _class_of(name: str) -> type[_Applied]:
    """A class with the name of the function, which torch then shows in its messages."""
    return type(name, (_Applied,), {})


def _needs_no_derivative(tensors: tuple[Any, ...]) -> bool:
    """Whether every transform is a vmap, and no tensor below them has a derivative. Then forward alone is enough."""
    if forward_ad._current_level >= 0 or any(one.key() != TransformType.Vmap for one in get_interpreter_stack()):
        return False
    for tensor in tensors if torch.is_grad_enabled() else ():
        while tensor is not None and is_batchedtensor(tensor):
            tensor = get_unwrapped(tensor)
        if tensor is not None and tensor.requires_grad:
            return False
    return True


def apply(name: str, capsule: object, tensors: tuple[Any, ...]) -> Any:
    """The results of a function, followed by any further tensors that it has saved."""
    if _needs_no_derivative(tensors):  # torch's rule takes as long as a dozen operators, to prepare for backward
        return _core.transformed_forward(capsule, tensors)[1]
    call = _Call(capsule)
    try:
        return custom_function_call(_class_of(name), call, *tensors)
    finally:
        call.capsule = None  # it points to the caller's stack
