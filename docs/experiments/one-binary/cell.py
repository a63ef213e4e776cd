"""The LLTM cell, whose elementwise part is a compiled kernel. All ways share the rest, which is PyTorch."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from experiments import load

Cell = load("lltm", "cell").Cell


def cell_class(kernels: Mapping[str, Callable[..., Any]]) -> type:
    """A class of cells that compute with the functions forward and backward of `kernels`."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, h, c, weight, bias):
            joined = torch.cat([h, x], 1)
            new_h, new_c, activated = kernels["forward"](torch.addmm(bias, joined, weight.t()), c)
            ctx.save_for_backward(joined, activated, new_c, weight)
            return new_h, new_c

        @staticmethod
        @once_differentiable  # the kernels compute without autograd: a second derivative must fail, not be wrong
        def backward(ctx, grad_h, grad_c):
            joined, activated, new_c, weight = ctx.saved_tensors
            d_gates, d_c = kernels["backward"](grad_h, grad_c, activated, new_c)
            d_joined, state = d_gates @ weight, new_c.shape[1]
            return d_joined[:, state:], d_joined[:, :state], d_c, d_gates.t() @ joined, d_gates.sum(0)

    class KernelCell(Cell):
        def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
            return Function.apply(x, h, c, self.weight, self.bias)

    return KernelCell
