"""The operators with torch.library.custom_op, and the function with torch.autograd.Function."""

import torch
from torch import Tensor

__all__ = ["Exp"]


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
