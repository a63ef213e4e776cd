"""Checks for the tests of operators, beside torch's own `torch.library.opcheck` and `torch.autograd.gradcheck`."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch._dynamo
import torch.fx.experimental._config
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import RecompileError
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.utils._pytree import tree_leaves

__all__ = ["check_dynamic_shapes"]

_one_at_a_time = threading.RLock()  # torch's compiler has one state for all threads


def _forget_others() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.RLock()


os.register_at_fork(after_in_child=_forget_others)  # the threads that held it are not there


def check_dynamic_shapes(
    function: Callable[..., Any],
    make_arguments: Callable[[int], Sequence[Any]],
    sizes: Iterable[int] = (5, 8, 13, 3, 21, 2, 34, 55, 4, 9),
) -> None:
    """Check that torch compiles an operator once for tensors of any size, forward and backward, with the same results.

    The check compiles `function` with ``torch.compile(fullgraph=True, dynamic=True)`` and calls it for each size. If
    the results require a gradient, the check compares the gradients of the arguments too. It resets the state of
    torch's compiler, so a call on another thread waits.

    Parameters
    ----------
    function
        An operator, such as ``torch.ops.demo.rows``, or a function that calls operators. It must change no argument.
    make_arguments
        A function that makes the arguments for one size: ``lambda n: (torch.randn(n, n + 1, requires_grad=True),)``.
    sizes
        Two sizes or more. None may be 0 or 1, because torch always recompiles for these.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two sizes, or `make_arguments` returns no tuple or list.
    AssertionError
        If torch recompiles `function`, with torch's reason; or if a result or gradient differs from that without
        ``torch.compile``, by `torch.testing.assert_close`.
    """
    sizes = tuple(sizes)
    if len(set(sizes)) < 2:
        raise ValueError(f"argument 'sizes' must have at least two different sizes, got {sizes}")
    with _one_at_a_time:
        _check(function, make_arguments, sizes)


def _check(function: Callable[..., Any], make_arguments: Callable[[int], Sequence[Any]], sizes: Sequence[int]) -> None:
    compiled: Counter[str] = Counter()

    def counting(direction: str) -> Callable[..., Any]:
        def compiler(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
            compiled[direction] += 1
            return make_boxed_func(graph.forward)

        return compiler

    def called(*arguments: Any) -> Any:
        return function(*arguments)

    torch._dynamo.reset()
    # Sizes that happen to be equal must not share a symbol.
    different = torch.fx.experimental._config.patch(use_duck_shape=False)  # type: ignore[attr-defined]
    backend = aot_autograd(fw_compiler=counting("forward"), bw_compiler=counting("backward"))
    dynamic = torch.compile(called, fullgraph=True, dynamic=True, backend=backend)
    for size in sizes:
        arguments = make_arguments(size)
        if not isinstance(arguments, (tuple, list)):
            raise TypeError(
                f"argument 'make_arguments' must return a tuple of arguments, got {type(arguments).__name__}; "
                "for a single argument, write (tensor,)"
            )
        try:
            with different, torch._dynamo.config.patch(error_on_recompile=True):
                found = _results_and_gradients(dynamic, arguments)
        except RecompileError as error:
            raise AssertionError(f"recompiled for the arguments of size {size}: {error}") from None
        again = [direction for direction, count in compiled.items() if count > 1]
        if again:
            raise AssertionError(f"recompiled for the arguments of size {size}, {again[0]}")
        torch.testing.assert_close(
            found, _results_and_gradients(function, arguments), equal_nan=True, msg=_naming(size)
        )
    torch._dynamo.reset()


def _results_and_gradients(function: Callable[..., Any], arguments: Sequence[Any]) -> list[Any]:
    results = function(*arguments)
    inputs = [one for one in tree_leaves(arguments) if isinstance(one, torch.Tensor) and one.requires_grad]
    outputs = [one for one in tree_leaves(results) if isinstance(one, torch.Tensor) and one.requires_grad]
    if not inputs or not outputs:
        return [results]
    # A different gradient for each element, so that the check detects mixed-up elements.
    weights = [torch.linspace(1, 2, one.numel(), device=one.device).reshape(one.shape).to(one.dtype) for one in outputs]
    return [results, torch.autograd.grad(outputs, inputs, weights, allow_unused=True, materialize_grads=True)]


def _naming(size: int) -> Callable[[str], str]:
    return lambda message: f"for the arguments of size {size}: {message}"
