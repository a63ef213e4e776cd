"""A plugin of pytest: what fast_rnnt has in C++ is ours, and so are the functions that were written again in Python."""

import random
import sys
from types import SimpleNamespace

import torch

from experiments.ports.rnnt import loss

random.seed(0)  # the tests draw their sizes, and fail now and then
torch.manual_seed(0)


@torch.no_grad()  # in the original, C++ that autograd does not see
def forward(px, py, boundary, _):
    """The scores. The original fills its last argument for `backward`; ours needs no such thing."""
    return torch.ops.ports_rnnt.mutual_information(px, py, boundary, False)[0]


@torch.no_grad()
def backward(px, py, boundary, _, grad):
    """The gradients for px and py."""
    _, px_grad, py_grad = torch.ops.ports_rnnt.mutual_information(px, py, boundary, True)
    return torch.ops.ports_rnnt.mutual_information_backward(grad, px_grad, py_grad, px, py)


sys.modules["_fast_rnnt"] = SimpleNamespace(
    with_cuda=lambda: False, mutual_information_forward=forward, mutual_information_backward=backward
)

import fast_rnnt  # noqa: E402  it imports the above

for name in loss.__all__:
    setattr(fast_rnnt, name, getattr(loss, name))
