"""CUDA kernels on a GPU: results, streams, graphs, devices and errors. `make gpu-test` runs them on such a machine."""

import os
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import BUILD, PROJECTS, import_from, install_project

from experiments import FOLDER, load

pytestmark = pytest.mark.cuda

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TOLERANCE = {torch.float64: 1e-12, torch.float32: 5e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@pytest.fixture(scope="module")
def ops(cuda_operators):
    return torch.ops.interop_cuda_test


@pytest.fixture(scope="module")
def fused(cuda_cell):
    return torch.ops.lltm.fused


def arguments(batch=16, features=32, state=128, dtype=torch.float32, device="cuda", requires_grad=True):
    """x, h, c, weight, bias."""
    sizes = [(batch, features), (batch, state), (batch, state), (3 * state, features + state), (3 * state,)]
    return [
        (torch.randn(*size, dtype=torch.float64) / (4 if len(size) == 1 or size[0] > batch else 1))
        .to(device, dtype)
        .requires_grad_(requires_grad)
        for size in sizes
    ]


def on_cpu(tensors):
    return [tensor.detach().cpu().double().requires_grad_(tensor.requires_grad) for tensor in tensors]


def reference(x, h, c, weight, bias):
    gates = torch.addmm(bias, torch.cat((h, x), 1), weight.t())
    i, o, z = gates.chunk(3, 1)
    new_c = c + torch.sigmoid(i) * torch.nn.functional.elu(z)
    return torch.tanh(new_c) * torch.sigmoid(o), new_c


def close(got, expected, dtype, factor=1.0):
    tolerance = TOLERANCE[dtype] * factor
    torch.testing.assert_close(got.detach().cpu().double(), expected.detach(), rtol=tolerance, atol=tolerance)


class TestElementwise:
    @pytest.mark.parametrize("dtype", FLOATING)
    @pytest.mark.parametrize("count", [0, 1, 3, 4, 1023, 1024, 1025, 1_000_003])
    def test_contiguous(self, ops, dtype, count):
        x, y = (torch.randn(count, device="cuda").to(dtype) for _ in range(2))
        close(ops.hypotenuse(x, y), torch.hypot(x.cpu().double(), y.cpu().double()), dtype)
        close(ops.swish(x, 1.5), x.cpu().double() * torch.sigmoid(1.5 * x.cpu().double()), dtype)

    @pytest.mark.parametrize("dtype", FLOATING)
    def test_layouts(self, ops, dtype):
        x = torch.randn(5, 7, 9, device="cuda").to(dtype)
        for a, b in [
            (x.permute(2, 0, 1), x.permute(2, 0, 1)),
            (x[:, ::2], x[:, :1].expand(5, 4, 9)),
            (x[1:, 1:, 1:], x[0, 0, 0]),
            (x.flatten()[1:], x.flatten()[:-1]),
        ]:
            close(ops.hypotenuse(a, b), torch.hypot(a.cpu().double(), b.cpu().double()), dtype)

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
    def test_integers(self, ops, dtype):
        x, y, z = (torch.randint(0, 11, (1001,), device="cuda").to(dtype) for _ in range(3))
        assert torch.equal(ops.multiply_add(x, y, z), x * y + z)

    def test_promotion_and_numbers_on_the_cpu(self, ops):
        x = torch.full((3,), 3.0, device="cuda", dtype=torch.float16)
        assert ops.hypotenuse(x, torch.tensor(4.0)).tolist() == [5.0] * 3
        assert ops.hypotenuse(x, torch.tensor(4.0)).dtype == torch.float16
        assert ops.hypotenuse(x, torch.full((3,), 4, device="cuda")).dtype == torch.float16
        assert ops.hypotenuse(x, torch.full((3,), 4.0, device="cuda")).dtype == torch.float32

    def test_into(self, ops):
        out = torch.zeros(3, 2, device="cuda").t()
        version = out._version
        ops.hypotenuse_into(torch.full((2, 3), 3.0, device="cuda"), torch.full((3,), 4.0, device="cuda"), out)
        assert out._version > version
        assert out.tolist() == [[5.0] * 3] * 2

    def test_offsets_that_need_64_bits(self, ops):
        if torch.cuda.mem_get_info()[0] < 12 << 30:
            pytest.skip("needs 12 GiB of the GPU's memory")
        x = torch.zeros(2**31 + 5, dtype=torch.float16, device="cuda")
        x[-3:] = 3
        y = torch.full((1,), 4.0, dtype=torch.float16, device="cuda").expand_as(x)
        result = ops.hypotenuse(x, y)
        assert result[-3:].tolist() == [5.0] * 3
        assert result[:2].tolist() == [4.0] * 2


class TestLltm:
    def test_agrees_with_the_cpu_in_float64(self):
        torch.manual_seed(0)
        load("lltm-cuda", "agreement").check(torch.device("cuda"))

    @pytest.mark.parametrize("dtype", FLOATING)
    @pytest.mark.parametrize("how", ["transposed", "with gaps", "expanded"])
    def test_layouts(self, fused, dtype, how):
        x, h, c, weight, bias = arguments(8, 16, 24, dtype, requires_grad=False)
        if how == "transposed":
            x, h, c, weight = (tensor.t().contiguous().t() for tensor in (x, h, c, weight))
        elif how == "with gaps":
            x, h, c = (torch.cat((t, t), 1)[:, ::2] for t in (x, h, c))
        else:
            h, c = h[:1].expand(8, 24), c[:1].expand(8, 24)
        got = fused(x, h, c, weight, bias)
        for result, expected in zip(got, reference(*on_cpu((x, h, c, weight, bias))), strict=False):
            close(result, expected, dtype, 8)

    @pytest.mark.parametrize(("batch", "state"), [(0, 4), (1, 1), (3, 5), (1, 4096)])
    def test_sizes(self, fused, batch, state):
        given = arguments(batch, 3, state, requires_grad=False)
        for result, expected in zip(fused(*given), reference(*on_cpu(given)), strict=False):
            close(result, expected, torch.float32, 8)

    def test_gradcheck(self, fused):
        given = arguments(2, 3, 4, torch.float64)
        assert torch.autograd.gradcheck(lambda *a: fused(*a)[:2], given)

    def test_opcheck(self, fused):
        given = arguments(2, 3, 4, torch.float32)
        assert set(torch.library.opcheck(fused.default, tuple(given)).values()) == {"SUCCESS"}

    def test_compile(self, fused):
        def step(*given):
            new_h, new_c, _ = fused(*given)
            return new_h.relu() + new_c

        given = arguments()
        compiled = torch.compile(step, fullgraph=True)
        torch.testing.assert_close(compiled(*given), step(*given))
        for got, expected in zip(
            torch.autograd.grad(compiled(*given).sum(), given),
            torch.autograd.grad(step(*given).sum(), given),
            strict=True,
        ):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)

    def test_offsets_that_need_64_bits(self, cuda_cell):
        """Offsets of rows and of threads exceed 32 bits; an odd width excludes vectors."""
        if torch.cuda.mem_get_info()[0] < 48 << 30:
            pytest.skip("needs 48 GiB of the GPU's memory")
        batch, state = 2**16 + 1, 2**15 + 1
        gates = torch.empty(batch, 3 * state, dtype=torch.float16, device="cuda")
        c, new_h, new_c = (torch.empty(batch, state, dtype=torch.float16, device="cuda") for _ in range(3))
        for tensor in (gates, c):
            for rows in tensor.split(4096):
                rows.normal_()
        last = gates[-1:].clone(), c[-1:].clone()
        cuda_cell.pointwise_forward(gates, c, new_h, new_c)
        i, o, z = (part.double() for part in last[0].chunk(3, 1))
        expected_c = last[1].double() + torch.sigmoid(i) * torch.nn.functional.elu(z)
        close(new_c[-1:], expected_c.cpu(), torch.float16)
        close(new_h[-1:], (torch.tanh(expected_c) * torch.sigmoid(o)).cpu(), torch.float16)


class TestStreams:
    def test_the_current_stream(self, cuda_operators):
        side = torch.cuda.Stream()
        assert cuda_operators.launch_on("cuda") == torch.cuda.current_stream().cuda_stream
        with torch.cuda.stream(side):
            assert cuda_operators.launch_on("cuda") == side.cuda_stream != 0

    def test_kernels_wait_for_what_is_before_them_in_their_stream(self, ops, fused):
        side = torch.cuda.Stream()
        x = torch.zeros(1000, device="cuda")
        given = arguments(requires_grad=False)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            x.fill_(3.0)
            given[2].fill_(1.0)
            result = ops.hypotenuse(x, x)
            _, new_c, _ = fused(*given)
        side.synchronize()
        torch.testing.assert_close(result, torch.full_like(result, 18.0).sqrt())
        close(new_c, reference(*on_cpu(given))[1], torch.float32, 8)

    def test_launches_do_not_wait(self, ops):
        x = torch.zeros(10, device="cuda")
        ops.hypotenuse(x, x)
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000_000)
        ops.hypotenuse(x, x)
        assert not torch.cuda.current_stream().query()
        torch.cuda.synchronize()

    def test_gradients_of_a_side_stream(self, fused):
        given = arguments()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            new_h, new_c, _ = fused(*given)
            loss = (new_h * new_c).sum()
        torch.cuda.current_stream().wait_stream(side)
        loss.backward()
        torch.cuda.synchronize()
        cpu = on_cpu(given)
        h, c = reference(*cpu)
        (h * c).sum().backward()
        for got, expected in zip(given, cpu, strict=True):
            close(got.grad, expected.grad, torch.float32, 50)

    def test_the_current_device_comes_back(self, ops):
        before = torch.cuda.current_device()
        last = torch.device("cuda", torch.cuda.device_count() - 1)
        result = ops.swish(torch.ones(4, device=last), 1.0)
        assert result.device == last
        assert torch.cuda.current_device() == before
        torch.testing.assert_close(result.cpu(), torch.sigmoid(torch.ones(4)))

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two CUDA devices")
    def test_two_devices(self, ops, fused):
        for index in (1, 0):
            given = arguments(device=f"cuda:{index}", requires_grad=False)
            close(fused(*given)[1], reference(*on_cpu(given))[1], torch.float32, 8)
        with pytest.raises(ValueError, match="must be on the device of argument"):
            ops.hypotenuse(torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1"))


@pytest.fixture(scope="module")
def modules():
    folder = BUILD / "streams-site"
    install_project(PROJECTS / "streams", folder, extra=(os.environ["INTEROP_CUDA"],))
    return import_from(folder, "streams"), import_from(folder, "cuda_mirrors")


class TestMirrors:
    """The mirrors of c10, c10.cuda and ATen.cuda agree with torch's Python functions."""

    def test_streams(self, modules):
        streams, cuda = modules
        device, side = torch.device("cuda", torch.cuda.current_device()), torch.cuda.Stream()
        here = seen(torch.cuda.current_stream())
        assert streams.current(device) == cuda.getCurrentCUDAStream() == here
        assert streams.default(device) == cuda.getDefaultCUDAStream() == seen(torch.cuda.default_stream())
        with torch.cuda.stream(side):
            assert streams.current(device) == cuda.getCurrentCUDAStream() == seen(side)
        assert streams.native_handle(device, side.stream_id) == side.cuda_stream
        inside, *_ = streams.within_stream(device, side.stream_id, lambda: seen(torch.cuda.current_stream()))
        assert inside == seen(side)
        assert streams.current(device) == here

    def test_queries(self, modules):
        streams, _ = modules
        device, side = torch.device("cuda", torch.cuda.current_device()), torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(500_000_000)
        assert not streams.query(device, side.stream_id)
        streams.synchronize_stream(device, side.stream_id)
        assert streams.query(device, side.stream_id)

    def test_events(self, modules):
        streams, cuda = modules
        device, side = torch.device("cuda", torch.cuda.current_device()), torch.cuda.Stream()

        def sleep():
            with torch.cuda.stream(side):
                torch.cuda._sleep(100_000_000)

        assert streams.elapsed_on(device, side.stream_id, sleep) > 1
        assert streams.elapsed_on(device, side.stream_id, lambda: None) < 1
        assert cuda.record() == (True, device.index)

    def test_devices(self, modules):
        streams, cuda = modules
        assert cuda.is_available()
        assert cuda.device_count() == streams.device_count(torch.device("cuda")) == torch.cuda.device_count()
        last = torch.device("cuda", torch.cuda.device_count() - 1)
        assert streams.within_device(last, torch.cuda.current_device)[0] == last.index
        index, stream = streams.within_launch(torch.zeros(2, device=last), torch.cuda.current_device)
        assert (index, stream) == (last.index, torch.cuda.current_stream(last).cuda_stream)

    def test_properties(self, modules):
        _, cuda = modules
        properties = torch.cuda.get_device_properties(0)
        listed = cuda.getDeviceProperties()
        assert listed[:2] == (properties.name, properties.total_memory)
        assert listed[6:9] == (properties.major, properties.minor, properties.multi_processor_count)
        assert cuda.warp_size() == properties.warp_size

    def test_statistics(self, modules):
        streams, cuda = modules
        device = torch.device("cuda", torch.cuda.current_device())
        kept = torch.empty(1 << 20, device=device)
        arrays, counts = streams.statistics(device)
        assert arrays[4][0] == torch.cuda.memory_allocated()
        assert cuda.getDeviceStats(device.index)[0] == torch.cuda.max_memory_allocated()
        assert counts[1] == torch.cuda.memory_stats()["num_ooms"]
        assert cuda.getMemoryInfo()[1] == torch.cuda.mem_get_info(0)[1]
        assert kept.numel() == 1 << 20

    def test_memory_that_a_side_stream_uses_is_kept(self, modules):
        streams, _ = modules
        device, side = torch.device("cuda", torch.cuda.current_device()), torch.cuda.Stream()
        x = torch.ones(1 << 20, device=device)
        for fill in (torch.ones, torch.zeros):  # the first launch of a kernel loads code, and may wait for the GPU
            fill(1, device=device).sum()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(500_000_000)
            total = x.sum()
        streams.record_stream_on(x, side.stream_id)
        address = x.data_ptr()
        del x
        other = torch.zeros(1 << 20, device=device)
        assert not side.query()
        assert other.data_ptr() != address
        side.synchronize()
        assert total.item() == 1 << 20

    def test_capture(self, modules):
        _, cuda = modules
        x = torch.zeros(2, device="cuda")
        assert cuda.currentStreamCaptureStatus()
        cuda.assertNotCapturing()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.add_(1)
            assert not cuda.currentStreamCaptureStatus()
        assert cuda.currentStreamCaptureStatus()


def seen(stream):
    """A stream as the modules of tests/projects/streams describe it."""
    return f"cuda:{stream.device_index}", stream.stream_id


class TestGraphs:
    def test_forward_and_backward_are_captured(self, ops, fused):
        given = arguments()

        def run():
            new_h, new_c, _ = fused(*given)
            # Detached, because a live autograd graph keeps its leaves' nodes, and with them the capture's stream.
            return [
                new_h.detach(),
                new_c.detach(),
                ops.swish(new_c.detach(), 1.5),
                *torch.autograd.grad((new_h * new_c).sum(), given),
            ]

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = run()
        for _ in range(2):
            with torch.no_grad():
                for tensor in given:
                    tensor.normal_(std=0.5)
            allocated = torch.cuda.memory_stats()["allocation.all.allocated"]
            graph.replay()
            assert torch.cuda.memory_stats()["allocation.all.allocated"] == allocated
            torch.cuda.synchronize()
            for got, expected in zip(captured, run(), strict=True):
                torch.testing.assert_close(got, expected)


class TestAutocast:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_the_dtype_of_the_region(self, fused, dtype):
        given = arguments()
        with torch.autocast("cuda", dtype=dtype):
            new_h, new_c, _ = fused(given[0].to(dtype), *given[1:])
        assert (new_h.dtype, new_c.dtype) == (dtype, dtype)
        for result, expected in zip((new_h, new_c), reference(*on_cpu(given)), strict=True):
            close(result, expected, dtype, 8)

    def test_training_with_a_grad_scaler(self, fused):
        given = arguments()
        weights = torch.nn.ParameterList([given[3], given[4]]).cuda()
        optimizer = torch.optim.SGD(weights, lr=0.1)
        scaler = torch.amp.GradScaler("cuda")
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                new_h, _, _ = fused(*given[:3], *weights)
                loss = (new_h.float() - 0.25).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        assert losses[-1] < losses[0]


def in_a_process(code, site, **environment):
    """Runs `code` in a new process that can import the CUDA project; device errors end with the process."""
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site)} | environment,
        timeout=300,
    )


class TestErrors:
    def test_a_launch_that_cannot_be(self, cuda_operators):
        target = torch.zeros(1, device="cuda")
        # Releases of CUDA call it an invalid configuration or an invalid value.
        with pytest.raises(torch.AcceleratorError, match=r"launch of touch: .*\(cudaErrorInvalid\w+, \d+\)$") as raised:
            cuda_operators.touch(target, 4096)
        assert raised.value.error_code in {1, 9}
        cuda_operators.touch(target, 32)  # neither we nor torch raise the error again
        assert target.item() == 1.0

    def test_an_illegal_access_is_raised_at_the_next_check(self, cuda_site):
        code = (
            "import torch, cuda_operators\n"
            "x = torch.zeros(4, device='cuda')\n"
            "cuda_operators.touch_address(x, 0x1000)\n"
            "import time; time.sleep(2)\n"
            "try: cuda_operators.touch(x, 32)\n"
            "except torch.AcceleratorError as error: print(error.error_code, error, flush=True)\n"
        )
        done = in_a_process(code, cuda_site)
        assert done.stdout.startswith("700 CUDA error at the launch of touch: "), done.stdout + done.stderr
        assert "cudaErrorIllegalAddress" in done.stdout


SANITIZED = """
import torch, cuda_operators
from experiments import load
load('lltm-cuda', 'ways').module()
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
    for batch, features, state in ((3, 5, 7), (16, 32, 128), (1, 1, 1)):
        shapes = (batch, features), (batch, state), (batch, state), (3 * state, features + state), (3 * state,)
        given = [torch.randn(*s, device='cuda').to(dtype).requires_grad_() for s in shapes]
        new_h, new_c, _ = torch.ops.lltm.fused(*given)
        torch.autograd.grad((new_h.float() * new_c.float()).sum(), given)
    for count in (1, 3, 255, 1025):
        x = torch.randn(count + 1, device='cuda').to(dtype)
        torch.ops.interop_cuda_test.hypotenuse(x[1:], x[:-1])
        torch.ops.interop_cuda_test.hypotenuse(x, x)
torch.cuda.synchronize()
print('done')
"""


@pytest.fixture(scope="module")
def sanitized(cuda_site, cuda_cell):
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None:
        pytest.skip("there is no compute-sanitizer on PATH or in /usr/local/cuda/bin")

    def run(code):
        return subprocess.run(
            [tool, "--tool", "memcheck", "--error-exitcode", "86", sys.executable, "-P", "-c", code],
            capture_output=True,
            text=True,
            # Without caching, a byte beyond a tensor is a byte beyond an allocation.
            env=os.environ
            | {"PYTHONPATH": f"{cuda_site}{os.pathsep}{FOLDER.parent}", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
            timeout=540,
        )

    return run


class TestSanitizer:
    def test_no_access_out_of_bounds(self, sanitized):
        done = sanitized(SANITIZED)
        assert (done.returncode, "done" in done.stdout) == (0, True), (done.stdout + done.stderr)[-4000:]

    def test_it_would_have_found_one(self, sanitized):
        code = (
            "import torch, cuda_operators\n"
            "x = torch.zeros(4, device='cuda')\n"
            "cuda_operators.touch_address(x, x.data_ptr() + 16)\n"
            "torch.cuda.synchronize()\n"
        )
        assert sanitized(code).returncode != 0
