"""CUDA modules on a machine without a GPU: they compile, link and import, and their errors name the cause."""

import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from interop.testing import check_dynamic_shapes

no_device = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


def fake(*sizes, device="cuda:0", dtype=torch.float32):
    """A tensor that claims to be on a GPU, and has no memory."""
    with FakeTensorMode():
        return torch.empty(sizes, device=device, dtype=dtype)


def on_meta(*sizes, dtype=torch.float32):
    return torch.empty(sizes, device="meta", dtype=dtype)


SIZED = {
    "swish": lambda n: (on_meta(n, n + 1), 1.5),
    "hypotenuse": lambda n: (on_meta(n, n + 1, dtype=torch.int32).t(), on_meta(n, dtype=torch.float16)),
    "multiply_add": lambda n: (on_meta(n, 1, dtype=torch.int64), on_meta(n + 1, dtype=torch.int8), on_meta(n, n + 1)),
}


@pytest.mark.native
class TestArguments:
    def test_cpu_tensor(self, cuda_operators):
        message = r"argument 'input 0' must be on a CUDA device, got cpu; copy it with \.cuda\(\)"
        with pytest.raises(ValueError, match=message):
            cuda_operators.call_swish(torch.zeros(2), 1.0)

    def test_mixed_devices(self, cuda_operators):
        message = r"argument 'input 1' must be on the device of argument 'input 0', cuda:0, got {}"
        others = [torch.zeros(2), torch.zeros(2, device="meta")]
        if torch.cuda.device_count() != 1:  # with one, torch makes no fake tensor on a second
            others.append(fake(2, device="cuda:1"))
        for x in others:
            with pytest.raises((ValueError, TypeError), match=message.format(x.device)):
                cuda_operators.call_hypotenuse(fake(2), x)

    def test_fake_tensor(self, cuda_operators):
        """A tensor without memory is rejected, whichever device it names."""
        with pytest.raises(TypeError, match=r"argument 'x' must be a tensor with memory of its own, got \w*FakeTensor"):
            cuda_operators.check_tensor(fake(2))

    def test_none(self, cuda_operators):
        with pytest.raises(TypeError, match="NoneType"):
            cuda_operators.call_swish(None, 1.0)

    def test_operator_without_a_kernel_for_the_device(self, cuda_operators):
        with pytest.raises(NotImplementedError, match=r"interop_cuda_test::swish.*'CPU' backend"):
            torch.ops.interop_cuda_test.swish(torch.zeros(2), 1.0)

    def test_fake_tensors_take_the_meta_kernel(self, cuda_operators):
        with FakeTensorMode():
            result = torch.ops.interop_cuda_test.swish(torch.empty(2, 3, device="cuda:0"), 1.0)
        assert (result.shape, result.device) == (torch.Size([2, 3]), torch.device("cuda:0"))

    @pytest.mark.long
    @pytest.mark.unchecked(by="leaks", reason="torch keeps what it compiled")
    @pytest.mark.parametrize("name", SIZED)
    def test_one_compilation_for_all_sizes(self, cuda_operators, name):
        """Of the fake kernels, which need no GPU."""
        check_dynamic_shapes(getattr(torch.ops.interop_cuda_test, name), SIZED[name])

    def test_nothing_to_launch(self, cuda_operators):
        with pytest.raises(ValueError, match=r"given an Elementwise without operands; assign it first"):
            cuda_operators.launch_nothing()
        with pytest.raises(ValueError, match="takes a different number of values than its Elementwise has inputs"):
            cuda_operators.check_error(-3)

    def test_meta_tensors_have_an_output(self, cuda_operators):
        x = torch.empty(2, 3, dtype=torch.int32, device="meta")
        y = cuda_operators.elementwise_output(x, torch.empty(4, 1, 3, dtype=torch.float16, device="meta"))
        assert (y.shape, y.dtype, y.device.type) == ((4, 2, 3), torch.float16, "meta")
        assert cuda_operators.elementwise_output(x, x).dtype == torch.float32

    def test_a_gradient_that_would_be_lost(self, cuda_operators):
        x = fake(2).requires_grad_()
        with pytest.raises(RuntimeError, match="Elementwise: input 0 requires grad, and what is computed here belongs"):
            cuda_operators.call_swish(x, 1.0)
        with torch.no_grad(), pytest.raises(TypeError, match="must be a tensor with memory of its own"):
            cuda_operators.call_swish(x, 1.0)

    def test_a_number_may_come_first(self, cuda_operators):
        with pytest.raises(TypeError, match="argument 'input 1' must be a tensor with memory of its own"):
            cuda_operators.call_hypotenuse(torch.tensor(1.0), fake(2))

    def test_kernel_without_the_dtype(self, cuda_operators):
        with pytest.raises(TypeError, match=r"kernel a_kernel is not compiled for the dtype.*to\(torch\.float32\)"):
            cuda_operators.check_error(-1)


@pytest.mark.native
class TestLaunch:
    def test_a_device_that_is_not_cuda(self, cuda_operators):
        with pytest.raises(ValueError, match="a CUDA kernel must be launched on a CUDA device, got cpu"):
            cuda_operators.launch_on("cpu")

    def test_unassigned(self, cuda_operators):
        with pytest.raises(RuntimeError, match="must be assigned to a variable"):
            cuda_operators.unassigned()

    def test_no_error(self, cuda_operators):
        cuda_operators.check_error(0)

    @pytest.mark.parametrize(
        ("code", "name"),
        [
            (700, "cudaErrorIllegalAddress"),
            (9, "cudaErrorInvalidConfiguration"),
            (98, "cudaErrorInvalidDeviceFunction"),
        ],
    )
    def test_errors_have_their_names(self, cuda_operators, code, name):
        with pytest.raises(torch.AcceleratorError, match=rf"launch of a_kernel: .* \({name}, {code}\)") as raised:
            cuda_operators.check_error(code)
        assert raised.value.error_code == code
        assert ("CUDA_LAUNCH_BLOCKING=1" in str(raised.value)) == (code >= 700)
        assert "\n" not in str(raised.value)

    @no_device
    def test_no_device(self, cuda_operators):
        why = (
            "built without CUDA" if torch.version.cuda is None else "torch finds no CUDA device; check that nvidia-smi"
        )
        with pytest.raises(torch.AcceleratorError, match=why) as raised:
            cuda_operators.launch_on("cuda:0")
        assert raised.value.error_code == 100

    @no_device
    def test_the_runtime_itself_finds_no_driver(self, cuda_operators):
        with pytest.raises(torch.AcceleratorError, match=r"launch of touch: .*\(cudaError\w+, \d+\)"):
            cuda_operators.touch_without_a_device(32)

    @no_device
    def test_import_loads_no_driver(self, cuda_site, bare):
        """A process that only imports the module creates no CUDA context, and may fork."""
        code = "import cuda_operators, sys; print('libcuda.so' in open('/proc/self/maps').read())"
        assert bare(code, cuda_site) == "False\n"


SIZES = {"x": (3, 4), "h": (3, 5), "c": (3, 5), "weight": (15, 9), "bias": (15,)}


@pytest.mark.slow
class TestLltm:
    """The errors of the CUDA kernel of lltm::fused. Its results are tested in test_cuda_kernels.py and test_gpu.py."""

    def arguments(self, **changed):
        return [changed.get(name, fake(*sizes)) for name, sizes in SIZES.items()]

    @pytest.mark.parametrize("name", [name for name in SIZES if name != "h"])
    def test_device(self, cuda_cell, name):
        for other in ("cpu", "cuda:1"):
            with pytest.raises(
                ValueError, match=f"argument '{name}' must be on the device of argument 'h', cuda:0, got {other}"
            ):
                cuda_cell.forward(*self.arguments(**{name: fake(*SIZES[name], device=other)}))

    def test_nothing_on_a_gpu(self, cuda_cell):
        with pytest.raises(ValueError, match="argument 'h' must be on a CUDA device, got cpu"):
            cuda_cell.forward(*(torch.zeros(sizes) for sizes in SIZES.values()))

    @pytest.mark.parametrize("name", SIZES)
    def test_dtype(self, cuda_cell, name):
        wrong = fake(*SIZES[name], dtype=torch.int32 if name == "h" else torch.float64)
        with pytest.raises(TypeError, match=f"argument '{name}' must have .*dtype"):
            cuda_cell.forward(*self.arguments(**{name: wrong}))

    @pytest.mark.parametrize("name", SIZES)
    def test_sizes(self, cuda_cell, name):
        wrong = fake(*(size + 1 for size in SIZES[name]))
        with pytest.raises(ValueError, match=r"argument '\w+' must have sizes"):
            cuda_cell.forward(*self.arguments(**{name: wrong}))
        with pytest.raises(ValueError, match=f"argument '{name}' must have [12] dimension"):
            cuda_cell.forward(*self.arguments(**{name: fake(*SIZES[name], 1)}))

    def test_float16_is_accepted(self, cuda_cell):
        """The check of dtypes passes, and only the missing memory raises."""
        half = {name: fake(*sizes, dtype=torch.float16) for name, sizes in SIZES.items()}
        with pytest.raises(TypeError, match="must be a tensor with memory of its own"):
            cuda_cell.forward(*half.values())


@pytest.mark.long
@pytest.mark.extended
def test_a_module_without_a_launcher_of_its_own(tmp_path):
    """interop/cuda/launch.h alone needs neither headers nor libraries of CUDA."""
    (tmp_path / "stream_of.pyx").write_text(
        "cimport torch\n"
        "from interop.cuda cimport Launch\n\n"
        "def stream_of(torch.Tensor x not None):\n"
        "    cdef Launch launch = Launch(x.cdata)\n"
        "    return <size_t>launch.stream()\n\n"
        "def check(int error):\n"
        "    cdef Launch launch = Launch()\n"
        "    launch.check(error, b'k')\n"
    )
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nfrom interop.build import BuildExtension, Extension\n"
        "setup(ext_modules=[Extension('stream_of', ['stream_of.pyx'])], cmdclass={'build_ext': BuildExtension})\n"
    )
    built = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=tmp_path, capture_output=True, text=True
    )
    assert not built.returncode, built.stdout + built.stderr
    code = (
        "import torch, stream_of\n"
        "for call in (lambda: stream_of.stream_of(torch.zeros(1)), lambda: stream_of.check(700)):\n"
        "    try: call()\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("ValueError a CUDA kernel must be launched on a CUDA device, got cpu")
    assert second.startswith("AcceleratorError CUDA error at the launch of k: see cudaError_t")
