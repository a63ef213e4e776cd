"""Compares with what torch computes."""

import pytest
import torch
from your_project import swish


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
def test_values(shape):
    x = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(swish(x), torch.nn.functional.silu(x))


def test_gradient():
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(swish, (x,))


@pytest.mark.parametrize("wrong", [None, 1.0, [1.0]])
def test_wrong_arguments(wrong):
    with pytest.raises(TypeError):
        swish(wrong)
