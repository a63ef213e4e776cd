"""The operators with torch.library.custom_op, and the function with torch.autograd.Function."""

import torch
from torch import Tensor

__all__ = ["Exp", "ExpEverywhere"]


@torch.library.custom_op("ops_python::exp", mutates_args=())
def _exp(x: Tensor) -> Tensor:
    return torch.exp(x)


@torch.library.custom_op("ops_python::exp_with_gradient", mutates_args=())
def _exp_with_gradient(x: Tensor) -> Tensor:
    return torch.exp(x)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(output)


def _backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return grad * y


_exp_with_gradient.register_autograd(_backward, setup_context=_setup_context)
_exp.register_vmap(lambda info, in_dims, x: (_exp(x), in_dims[0]))


class Exp(torch.autograd.Function):
    """exp, differentiable."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        """The exponential of x, which is kept."""
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        """The gradient of x."""
        (y,) = ctx.saved_tensors
        return grad * y


class ExpEverywhere(torch.autograd.Function):
    """exp, differentiable in both modes and under vmap, for which torch requires a setup_context."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """The exponential of x."""
        return torch.exp(x)

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor], output: Tensor) -> None:
        """Keep the result."""
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        """The gradient of x."""
        (y,) = ctx.saved_tensors
        return grad * y

    @staticmethod
    def jvp(ctx, tangent: Tensor) -> Tensor:
        """The tangent of the result."""
        (y,) = ctx.saved_tensors
        return tangent * y
