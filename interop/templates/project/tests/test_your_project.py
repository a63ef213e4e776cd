"""Compares with what torch computes."""

import pytest
import torch
from your_project import softclip


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
def test_values(shape):
    x = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(softclip(x, 2.0), 2 * torch.tanh(x / 2))


def test_gradient():
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: softclip(x, 0.5), (x,))


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"limit must be above 0, got 0\.0"):
        softclip(torch.ones(3), 0.0)
    with pytest.raises(TypeError):
        softclip([1.0], 1.0)
