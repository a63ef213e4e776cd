"""The LLTM cell around a compiled forward and backward. C++ and Cython share all of this file."""

from types import ModuleType

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .cell import Cell


def native_cell(kernels: ModuleType) -> type[Cell]:
    """A class of cells that compute with `kernels`, a module with the functions forward and backward."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, h, c, weight, bias):
            new_h, new_c, *saved = kernels.forward(x, h, c, weight, bias)
            ctx.save_for_backward(*saved, weight)
            return new_h, new_c

        @staticmethod
        @once_differentiable  # the kernels compute without autograd: a second derivative must fail, not be wrong
        def backward(ctx, grad_h, grad_c):
            return tuple(kernels.backward(grad_h, grad_c, *ctx.saved_tensors, ctx.needs_input_grad))

    class NativeCell(Cell):
        def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
            return Function.apply(x, h, c, self.weight, self.bias)

    return NativeCell
