"""Modules for many releases of torch on a GPU: tensors, the current device and stream, operators for the key CUDA."""

import gc

import pytest
import torch
from conftest import needs_stable

import interop

pytestmark = [pytest.mark.cuda, needs_stable]

SOURCE = """
cimport ATen as at
cimport torch
cimport torch.stable as st
from libc.stdint cimport int64_t
from libcpp.vector cimport vector
from torch.library cimport define, impl


def described(st.Tensor x not None):
    cdef st.Device device = x.cdata.device()
    return st.wrap_device(device), device.is_cuda(), device.index(), <size_t>x.cdata.data_ptr(), x.cdata.numel()


def made_like(st.Tensor x not None):
    return st.wrap(at.empty_like(x.cdata)), st.wrap(at.zeros((2, 3), x.cdata.options()))


def to_the_cpu(torch.Tensor x not None):
    return torch.wrap(x.cdata.to(st.Device(st.kCPU)))


def seen_within(torch.Tensor x not None, function):
    cdef st.DeviceGuard _guard = st.DeviceGuard(x.cdata.device())
    return function()


def product_within(torch.Tensor x not None):
    cdef st.DeviceGuard _guard = st.DeviceGuard(x.cdata.device())
    return torch.wrap(at.mm(x.cdata, x.cdata))


def stream_of(st.Tensor x not None):
    return <size_t>st.current_native_stream(x.cdata.device())


cdef int deleted = 0


cdef void delete(void* data, void* context) noexcept nogil:
    (<int*>context)[0] += 1


def over_memory_of(st.Tensor x not None):
    cdef vector[int64_t] sizes = x.cdata.sizes().vec(), strides = x.cdata.strides().vec()
    return st.wrap(
        st.from_blob(
            x.cdata.data_ptr(), sizes, strides, x.cdata.scalar_type(), x.cdata.device(), delete, &deleted))


def deletions():
    return deleted


cdef at.Tensor swish(const at.Tensor& x, double beta) except * nogil:
    return at.mul(x, at.sigmoid(at.mul(x, beta)))


define("stable_gpu::swish", "(Tensor x, float beta) -> Tensor")
impl("stable_gpu::swish", "CUDA", swish)
impl("stable_gpu::swish", "Meta", swish)
"""


@pytest.fixture(scope="module")
def module(jit_cache):
    return interop.load_inline(SOURCE, name="stable_gpu", stable="2.11")


def test_what_a_tensor_says(module):
    x = torch.arange(24.0, device="cuda").view(2, 3, 4)
    for tensor in (x, x.transpose(0, 2), x[1:, ::2], x[:0]):
        device, is_cuda, index, address, count = module.described(tensor)
        assert (device, is_cuda, index) == (tensor.device, True, tensor.get_device())
        assert (address, count) == (tensor.data_ptr(), tensor.numel())


def test_new_tensors(module):
    x = torch.ones(4, 5, device="cuda", dtype=torch.float16)
    like, zeros = module.made_like(x)
    assert (like.device, like.dtype, like.shape) == (x.device, x.dtype, x.shape)
    assert torch.equal(zeros, torch.zeros(2, 3, device="cuda", dtype=torch.float16))
    assert torch.equal(module.to_the_cpu(x), x.cpu())


def test_the_current_device(module):
    before = torch.cuda.current_device()
    last = torch.device("cuda", torch.cuda.device_count() - 1)
    assert module.seen_within(torch.ones(2, device=last), torch.cuda.current_device) == last.index
    assert torch.cuda.current_device() == before
    x = torch.randn(4, 4, device=last)
    torch.testing.assert_close(module.product_within(x), x @ x)
    with pytest.raises(RuntimeError):
        module.product_within(torch.ones(2, 3, device=last))
    assert torch.cuda.current_device() == before


def test_the_current_stream(module):
    x, side = torch.ones(2, device="cuda"), torch.cuda.Stream()
    if torch.__version__ < (2, 13):
        with pytest.raises(NotImplementedError, match=r"from torch 2\.13 on"):
            module.stream_of(x)
        return
    assert module.stream_of(x) == torch.cuda.current_stream().cuda_stream
    with torch.cuda.stream(side):
        assert module.stream_of(x) == side.cuda_stream != 0


def test_memory_of_others(module):
    x = torch.arange(12.0, device="cuda").view(3, 4).t()
    over = module.over_memory_of(x)
    assert (over.data_ptr(), over.device, over.stride()) == (x.data_ptr(), x.device, x.stride())
    assert torch.equal(over, x)
    over += 1
    assert x[0, 0].item() == 1
    part, before = over[1:], module.deletions()
    del over
    assert module.deletions() == before
    del part
    gc.collect()
    assert module.deletions() == before + 1


def test_an_operator(module):
    swish, x = torch.ops.stable_gpu.swish, torch.randn(1000, device="cuda")
    expected = x * torch.sigmoid(1.5 * x)
    torch.testing.assert_close(swish(x, 1.5), expected)
    torch.testing.assert_close(torch.compile(swish, fullgraph=True)(x, 1.5), expected)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        y = x + 1
        result = swish(y, 1.5)
    side.synchronize()
    torch.testing.assert_close(result, (x + 1) * torch.sigmoid(1.5 * (x + 1)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = swish(x, 1.5)
    x.normal_()
    graph.replay()
    torch.testing.assert_close(captured, x * torch.sigmoid(1.5 * x))
    with pytest.raises(NotImplementedError, match="CPU"):
        swish(x.cpu(), 1.5)
