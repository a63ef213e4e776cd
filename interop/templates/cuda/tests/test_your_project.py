"""Compares with what torch computes, on every device that is there."""

import pytest
import torch
from your_project import softclip

from interop.testing import check_dynamic_shapes

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
def test_values(device, shape):
    x = torch.randn(shape, dtype=torch.float64, device=device)
    torch.testing.assert_close(softclip(x, 2.0), 2 * torch.tanh(x / 2))


@pytest.mark.parametrize("device", DEVICES)
def test_operator(device):
    x = torch.randn(5, dtype=torch.float64, device=device, requires_grad=True)
    assert set(torch.library.opcheck(torch.ops.your_project.softclip.default, (x, 0.5)).values()) == {"SUCCESS"}
    assert torch.autograd.gradcheck(lambda x: softclip(x, 0.5), (x,))


@pytest.mark.parametrize("device", DEVICES)
def test_torch_compiles_it_once_for_all_sizes(device):
    check_dynamic_shapes(softclip, lambda n: (torch.randn(n, n + 1, device=device, requires_grad=True), 0.5))


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"limit must be above 0, got 0\.0"):
        softclip(torch.ones(3), 0.0)
