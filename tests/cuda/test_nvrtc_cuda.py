"""Kernels compiled at run time, on a GPU: numbers, streams, graphs, errors."""

import gc
import threading

import pytest
import torch
from conftest import import_from

import interop.cuda
from interop.cuda import nvrtc

pytestmark = pytest.mark.cuda

SAXPY = """\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdint>

template <class T>
__global__ void saxpy(T* y, const T* x, float a, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)(a * (float)x[i] + (float)y[i]);
}

template <>
__global__ void saxpy<double>(double* y, const double* x, float a, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
TYPES = {torch.float32: "float", torch.float64: "double", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}


@pytest.fixture(scope="module")
def launches(nvrtc_site):
    return import_from(nvrtc_site, "launches")


@pytest.fixture(scope="module")
def make_saxpy(nvrtc_site):
    """Makes a Saxpy for a dtype."""
    # Without CUDA's headers, only float and double can be tested.
    source = SAXPY if nvrtc.include_options() else SAXPY.partition("bf16.h>\n")[2]
    saxpy = import_from(nvrtc_site, "saxpy")

    def make(dtype=torch.float32):
        if dtype in {torch.float16, torch.bfloat16} and not nvrtc.include_options():
            pytest.skip("needs the package nvidia-cuda-runtime, which has cuda_fp16.h")
        return saxpy.Saxpy(interop.cuda.compile(source)[f"saxpy<{TYPES[dtype]}>"])

    return make


def pair(dtype=torch.float32, size=100_003, device="cuda"):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(size, generator=generator, dtype=torch.float64).to(device, dtype) for _ in range(2))


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 100_003])
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers(make_saxpy, dtype, size):
    y, x = pair(dtype, size)
    wanted = (y.double() + 1.5 * x.double()).to(dtype)
    make_saxpy(dtype)(y, x, 1.5)
    torch.testing.assert_close(y, wanted)


def test_runs_on_the_current_stream(make_saxpy):
    saxpy = make_saxpy()
    y, x = pair()
    saxpy(y, x, 1.0)  # the first launch loads the code, and may wait for the GPU
    wanted = torch.full_like(y, 3.0) + 2 * x
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(500_000_000)  # about 0.3 s
        y.fill_(3.0)
        saxpy(y, x, 2.0)
        launched = side.record_event()
    # The default stream does not wait for the kernel, and the launch did not wait for the side stream.
    torch.cuda.current_stream().synchronize()
    assert not launched.query()
    side.synchronize()
    torch.testing.assert_close(y, wanted)


def test_runs_in_a_graph(make_saxpy):
    saxpy = make_saxpy()
    y, x = pair()
    start = y.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        saxpy(y, x, 2.0)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    y.copy_(start)
    with torch.cuda.graph(graph):
        saxpy(y, x, 2.0)
    torch.testing.assert_close(y, start, rtol=0, atol=0)
    # The graph's launch no longer needs the kernel's owner.
    del saxpy
    gc.collect()
    for _ in range(3):
        graph.replay()
    torch.testing.assert_close(y, start + 6 * x, rtol=1e-5, atol=1e-5)


def test_other_kernels_come_and_go_during_a_capture(make_saxpy, launches):
    saxpy = make_saxpy()
    y, x = pair()
    start = y.clone()
    saxpy(y, x, 2.0)
    other = launches.Launcher(interop.cuda.compile("__global__ void other() {}")["other"])
    other.nothing()
    y.copy_(start)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        del other
        gc.collect()
        late = launches.Launcher(interop.cuda.compile("__global__ void late() {}")["late"])
        saxpy(y, x, 2.0)
    graph.replay()
    late.nothing()
    torch.testing.assert_close(y, start + 2 * x)


def test_allocates_nothing(make_saxpy):
    saxpy = make_saxpy()
    y, x = pair()
    saxpy(y, x, 1.0)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    saxpy(y, x, 1.0)
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before


def test_runs_on_a_thread_that_has_not_used_cuda(make_saxpy):
    saxpy = make_saxpy()
    y, x = pair()
    wanted = y + x
    failed = []

    def run():
        try:
            saxpy(y, x, 1.0)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed, failed
    torch.testing.assert_close(y, wanted)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two CUDA devices")
def test_runs_on_the_device_of_the_tensors(make_saxpy):
    saxpy = make_saxpy()
    for device in ("cuda:1", "cuda:0"):
        y, x = pair(device=device)
        wanted = y + x
        saxpy(y, x, 1.0)
        assert torch.cuda.current_device() == 0
        torch.testing.assert_close(y, wanted)
    with pytest.raises(ValueError, match="'2 of saxpy<float>' must be on the device of argument '1 of saxpy<float>'"):
        saxpy(y, pair(device="cuda:1")[1], 1.0)


def test_code_may_go_while_it_runs(launches):
    source = "__global__ void slow(float* x) { long long t = clock64(); while (clock64() - t < 200000000); *x = 7; }"
    x = torch.zeros(1, device="cuda")
    launches.Launcher(interop.cuda.compile(source)["slow"]).of_tensor(x)
    gc.collect()
    assert x.item() == 7


def test_ptx_is_compiled_by_the_driver(launches):
    x = torch.zeros(1, device="cuda")
    module = interop.cuda.compile("__global__ void set(float* x) { *x = 7; }", arch="compute_75")
    launches.Launcher(module["set"]).of_tensor(x)
    assert x.item() == 7


def test_code_for_another_gpu(launches):
    other = "sm_75" if torch.cuda.get_device_capability() != (7, 5) else "sm_90"
    module = interop.cuda.compile("__global__ void set(float* x) { *x = 7; }", arch=other)
    with pytest.raises(torch.AcceleratorError, match=rf"compiled for {other}.*CUDA_ERROR_NO_BINARY_FOR_GPU"):
        launches.Launcher(module["set"]).of_tensor(torch.zeros(1, device="cuda"))


def test_sizes_of_arguments_of_a_c_function(launches):
    source = (
        'extern "C" __global__ void plain_c(int n) {} struct Pair { float a; int b; }; __global__ void p(Pair x) {}'
    )
    module = interop.cuda.compile(source)
    launcher = launches.Launcher(module["plain_c"])
    launcher.of_int(1)
    with pytest.raises(
        TypeError, match="argument 1 of kernel plain_c must have 4 bytes, got a whole number of 8 bytes"
    ):
        launcher.of_int64(1)
    with pytest.raises(TypeError, match="kernel plain_c takes 1 argument, got 0"):
        launcher.nothing()
    launches.Launcher(module["p"]).struct(1.0, 2)


def test_shared_memory_beyond_what_is_there_without_asking(launches):
    source = """
    __device__ unsigned size;
    extern __shared__ char memory[];
    __global__ void touch() { memory[threadIdx.x] = 1; asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size)); }
    """
    launcher = launches.Launcher(interop.cuda.compile(source)["touch"])
    limit = torch.cuda.get_device_properties().shared_memory_per_block_optin
    for size in (1000, limit, 2000):
        launcher.sizes(2, 1, 1, 32, size)
    torch.cuda.synchronize()
    with pytest.raises(torch.AcceleratorError, match=f"{limit + 1} bytes of shared memory: .*CUDA_ERROR_INVALID_VALUE"):
        launcher.sizes(1, 1, 1, 32, limit + 1)


def test_block_that_is_too_large(launches):
    launcher = launches.Launcher(interop.cuda.compile("__global__ void nothing() {}")["nothing"])
    with pytest.raises(
        torch.AcceleratorError, match=r"launch of nothing .* block \(4096, 1, 1\), .*CUDA_ERROR_INVALID"
    ):
        launcher.sizes(1, 1, 1, 4096, 0)
    launcher.sizes(0, 1, 1, 32, 0)
    launcher.sizes(1, 1, 1, 1024, 0)
    torch.cuda.synchronize()


def test_illegal_access_is_raised_at_the_next_check(nvrtc_site, bare):
    code = """
import torch, launches, interop.cuda
source = "__global__ void wild(float* x) { *x = 1; } __global__ void nothing() {}"
module = interop.cuda.compile(source)
nothing = launches.Launcher(module["nothing"])
torch.ones(1, device="cuda")
launches.Launcher(module["wild"]).pointer(64)
try:
    torch.cuda.synchronize()
except torch.AcceleratorError as error:
    print("illegal memory access" in str(error))
try:
    nothing.nothing()
except torch.AcceleratorError as error:
    print(error.error_code, "illegal memory access" in str(error))
"""
    assert bare(code, nvrtc_site, check=False).stdout.split() == ["True", "700", "True"]


def test_kernel_in_a_function_with_a_gradient(make_saxpy):
    saxpy = make_saxpy()

    class Saxpy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.ones_like(x)
            saxpy(y, x, 3.0)
            return y

        @staticmethod
        def backward(ctx, gradient):
            out = torch.zeros_like(gradient)
            saxpy(out, gradient.contiguous(), 3.0)
            return out

    x = pair()[0].requires_grad_()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = Saxpy.apply(x)
        (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    side.synchronize()
    torch.testing.assert_close(y, 1 + 3 * x)
    torch.testing.assert_close(gradient, torch.full_like(x, 3.0))
