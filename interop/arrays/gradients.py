"""Gradients and operators for functions that use only NumPy: `vjp=` and `op=` of `with_arrays`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_batchedtensor, is_gradtrackingtensor
from torch._library.custom_ops import CustomOpDef
from torch.autograd import forward_ad

from interop.arrays.containers import snapshot, tensors_in, tuple_like
from interop.arrays.options import Options, name_of


class _Node(torch.autograd.Function):
    """The autograd node. Its inputs are a function of positional arguments, its `vjp`, and the arguments."""

    @staticmethod
    def forward(function: Callable[..., Any], vjp: Callable[..., Any], *args: Any) -> Any:
        result = function(*args)
        if isinstance(result, Tensor):
            return result
        inner = [one for one in result if not isinstance(one, Tensor)] if isinstance(result, tuple) else [result]
        if any(True for _ in tensors_in(inner, set())) or not isinstance(result, tuple):
            what = "a tuple with arrays in a container" if isinstance(result, tuple) else type(result).__name__
            raise TypeError(f"argument 'vjp' is for functions that return an array or a tuple of arrays, got {what}")
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        function, ctx.vjp, *args = inputs
        ctx.name = name_of(function)  # the function itself holds its result, which would never be freed
        _keep(ctx, args, output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, *_gradients(ctx, ctx.vjp, grads)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise _unsupported(ctx.name)

    @staticmethod
    def vmap(info: Any, in_dims: Any, function: Callable[..., Any], *args: Any) -> Any:
        raise _unsupported(name_of(function))


def _unsupported(name: str) -> RuntimeError:
    return RuntimeError(
        f"{name} cannot be called in torch.func.vmap or in forward mode (jvp, jacfwd, hessian, dual "
        "tensors): it works on arrays, and vjp= gives it a gradient in reverse mode alone; call it outside of them, or "
        "use operators of torch there"
    )


def is_watched(tensor: Tensor) -> bool:
    """Whether autograd or a transform of ``torch.func`` follows operations on a tensor."""
    if tensor.requires_grad and torch.is_grad_enabled():
        return True
    of_transform = is_batchedtensor(tensor) or is_gradtrackingtensor(tensor)
    return of_transform or forward_ad.unpack_dual(tensor).tangent is not None


def _range(tensor: Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _memory(arguments: Any) -> list[tuple[int, int]]:
    """The memory of all tensors and arrays among the arguments."""
    return [
        *(_range(tensor) for tensor in tensors_in(arguments, set())),
        *(np.lib.array_utils.byte_bounds(array) for array in tensors_in(arguments, set(), np.ndarray)),
    ]


def _overlaps(result: Any, memory: list[tuple[int, int]]) -> bool:
    """Whether a result shares memory with the arguments without autograd knowing."""
    if not isinstance(result, Tensor) or result.layout != torch.strided or not result.numel():
        return False
    begin, end = _range(result)
    return any(begin < its_end and its_begin < end for its_begin, its_end in memory)


def apart(result: Any, arguments: Any) -> Any:
    """The result, with copies of what shares memory with the arguments: autograd takes a node's result for new."""
    memory = _memory(arguments)
    if isinstance(result, tuple):
        found = [_overlaps(one, memory) for one in result]
        values = [one.clone() if overlaps else one for one, overlaps in zip(result, found, strict=True)]
        return tuple_like(result, values, lambda one: one) if any(found) else result
    if type(result) is list:
        return [one.clone() if _overlaps(one, memory) else one for one in result]
    return result.clone() if _overlaps(result, memory) else result


def _keep(ctx: Any, args: Any, output: Any) -> None:
    """Save arguments and output for backward. Autograd saves the tensors, because it detects changes in place."""
    ctx.is_tuple = isinstance(output, (tuple, list))
    values = [*args, *(output if ctx.is_tuple else [output])]
    ctx.arguments = len(args)
    memo: dict[int, Any] = {}
    ctx.others = [None if isinstance(one, Tensor) else snapshot(one, memo) for one in values]
    ctx.tensors = [isinstance(one, Tensor) for one in values]
    ctx.save_for_backward(*(one for one in values if isinstance(one, Tensor)))
    nested = tensors_in(tuple(one for one in args if not isinstance(one, Tensor)), set())
    ctx.watched = [(one, one._version) for one in nested if not one.is_inference()]


def _gradients(ctx: Any, vjp: Callable[..., Any], grads: tuple[Any, ...], lists: bool = False) -> tuple[Any, ...]:
    saved = iter(ctx.saved_tensors)
    if any(one._version != version for one, version in ctx.watched):
        raise RuntimeError(
            f"{name_of(vjp)}, given as vjp=, needs a tensor in a list or dict that has been modified by an inplace "
            "operation since the call"
        )
    values = [next(saved) if is_tensor else other for is_tensor, other in zip(ctx.tensors, ctx.others, strict=True)]
    args, outputs = values[: ctx.arguments], values[ctx.arguments :]
    found = vjp(grads, tuple(outputs), *args) if ctx.is_tuple else vjp(grads[0], outputs[0], *args)
    if not isinstance(found, (tuple, list)):
        found = (found,)
    if len(found) != len(args):
        raise ValueError(
            f"{name_of(vjp)}, given as vjp=, must return a gradient or None for each of the {len(args)} positional "
            f"arguments, got {len(found)}"
        )
    if lists:  # torch expects a gradient for each tensor of a list
        found = [
            [None] * len(arg) if one is None and isinstance(arg, (list, tuple)) else one
            for one, arg in zip(found, args, strict=True)
        ]
    for i, one in enumerate(found):
        of_list = lists and isinstance(one, (list, tuple)) and isinstance(args[i], (list, tuple))
        if not all(each is None or isinstance(each, Tensor) for each in (one if of_list else [one])):
            raise TypeError(
                f"{name_of(vjp)}, given as vjp=, must return tensors or None, got {type(one).__name__} for argument {i}"
            )
    return tuple(found)


def differentiated(
    wrapper: Callable[..., Any],
    function: Callable[..., Any],
    vjp: Callable[..., Any],
    tensors: list[Tensor],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `wrapper` as a node that autograd records."""
    if kwargs:
        args, kwargs = _by_position(function, args, kwargs)
    positional = {id(one) for one in args}
    if any(tensor.requires_grad and id(tensor) not in positional for tensor in tensors):
        raise TypeError(
            f"{name_of(function)} has gradients for positional arguments only, got a tensor that requires grad "
            "as a keyword argument or in a list; pass it by position, or .detach() it"
        )
    called: list[Any] = []

    @functools.wraps(function)
    def call(*args: Any) -> Any:  # runs below the transforms of torch.func, whose tensors have no memory
        called.append(wrapper(*args, **kwargs))
        return tuple(called[0]) if isinstance(called[0], tuple) else called[0]

    result = _Node.apply(call, vjp, *args)  # type: ignore[no-untyped-call]
    if isinstance(result, tuple) and type(called[0]) is not tuple:  # a named tuple
        return tuple_like(called[0], list(result), lambda one: one)
    return result


def _by_position(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments for a `vjp`: by position, except the keyword-only ones."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    named = {one.name for one in signature.parameters.values() if one.kind in (one.KEYWORD_ONLY, one.VAR_KEYWORD)}
    if not bound.kwargs.keys() <= named:
        bound.apply_defaults()  # fills in omitted arguments before a given one
    return bound.args, bound.kwargs


def _of_own_storage(values: Any) -> list[Any]:
    """The values, with copies of tensors that share their memory with one before: no operator may return those."""
    seen: set[int] = set()
    made = []
    for one in values:
        if isinstance(one, Tensor) and one.layout == torch.strided:
            made.append(one.clone() if one.untyped_storage()._cdata in seen else one)
            seen.add(made[-1].untyped_storage()._cdata)
        else:
            made.append(one)
    return made


def _returned(one: Any, kind: Any) -> Any:
    """A number as an operator returns it: NumPy's functions have numbers where torch has tensors without dimensions."""
    if isinstance(kind, torch._C.OptionalType) and one is not None:
        return _returned(one, kind.getElementType())
    if isinstance(kind, torch._C.ListType) and isinstance(one, (list, tuple)):
        return [_returned(each, kind.getElementType()) for each in one]
    if isinstance(kind, torch._C.TensorType) and isinstance(one, (int, float, complex, np.generic)):
        return torch.from_numpy(np.array(one))
    return one.item() if isinstance(one, np.generic) else one


def operator_of(
    wrapper: Callable[..., Any],
    function: Callable[..., Any],
    op: str,
    fake: Callable[..., Any] | None,
    options: Options,
) -> CustomOpDef:
    """Register the function as an operator of torch."""
    name, parenthesis, rest = op.partition("(")
    mutated: Any = [one for one in options.mutates_args if isinstance(one, str)]
    if len(mutated) != len(options.mutates_args):
        raise TypeError(f"argument 'mutates_args' of an operator must contain only names, got {options.mutates_args!r}")
    schema = parenthesis + rest or torch.library.infer_schema(function, mutates_args=mutated)

    @functools.wraps(function)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        result = wrapper(*args, **kwargs)
        memory = _memory((args, kwargs))
        if any(_overlaps(one, memory) for one in tensors_in(result, set())):
            raise RuntimeError(f"{name} must return arrays with memory of their own, not views of arguments; copy them")
        if isinstance(result, (tuple, list)):
            result = _of_own_storage(result)
        if len(kinds) < 2:
            return _returned(result, kinds[0]) if kinds else result
        if not isinstance(result, (tuple, list)) or len(result) != len(kinds):
            got = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise ValueError(f"{name} must return {len(kinds)} values, as its schema says, got {got}")
        return tuple(map(_returned, result, kinds))

    parsed = torch._C.parse_schema(name + schema)
    kinds = [one.type for one in parsed.returns]
    arguments = parsed.arguments
    named = [one.name for one in arguments if one.kwarg_only]
    if options.vjp is not None and named:
        raise TypeError(f"argument 'vjp' needs positional parameters, but {', '.join(named)} is keyword-only")
    made = torch.library.custom_op(
        name, kernel, mutates_args=mutated, device_types=sorted(options.devices), schema=schema
    )
    if fake is not None:
        made.register_fake(fake)
    if options.vjp is not None:
        made.register_autograd(
            lambda ctx, *grads: _gradients(ctx, options.vjp, grads, lists=True),  # type: ignore[arg-type]
            setup_context=lambda ctx, inputs, output: _keep(ctx, inputs, output),
        )
    return made
