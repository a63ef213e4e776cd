"""The blocks of docs/stable-guide.md do what the page says, compiled for many releases of torch."""

import pytest
import torch
from conftest import needs_stable
from doc_blocks import of
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

import interop

pytestmark = needs_stable
PAGE = "docs/stable-guide.md"


@pytest.fixture(scope="module")
def modules(jit_cache):
    return [interop.load_inline(code, stable="2.11") for code in of(PAGE, "cython")]


def test_blocks(modules):
    (twice,) = (one.twice for one in modules if hasattr(one, "twice"))
    (total,) = (one.total for one in modules if hasattr(one, "total"))
    x = torch.randn(3, 4, dtype=torch.double)
    assert twice(x).equal(x * (x + x))
    for values in (x, x.t(), x[:, 1], x[:0], x[0, 0], torch.complex(x, x).conj().imag):
        torch.testing.assert_close(total(values), values.sum().item())
    with pytest.raises(RuntimeError, match="expected scalar type Double but found Float"):
        total(x.float())
    with FakeTensorMode():
        fake = torch.ones(3, dtype=torch.double)
    for without_memory in (fake, TwoTensor(x, x)):
        with pytest.raises(TypeError, match="x must have memory"):
            total(without_memory)
    with pytest.raises(TypeError, match="x must be on the CPU"):
        total(x.to("meta"))


WRITES = """
cimport torch

def write(torch.Tensor x not None):
    x.cdata.mutable_data_ptr[double]()[0] = 5
"""


def test_autograd_does_not_see_a_write(jit_cache):
    write = interop.load_inline(WRITES, stable="2.11").write
    x = torch.ones(3, dtype=torch.double, requires_grad=True)
    y = x.exp()
    write(y)
    (wrong,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    assert wrong[0] == 5
    torch.autograd.graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
