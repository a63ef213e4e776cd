"""Operations made from one scalar function match torch's for every dtype, shape and layout, on torch's threads."""

import os
import re
import sys

import pytest
import torch
from conftest import PROJECTS, compiles, each_instruction_set, import_from, run
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_iterators import DTYPES, ONE, REFUSED, check_same, pairs, strided, values
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad

from interop.testing import check_dynamic_shapes

pytestmark = [
    pytest.mark.native,
    pytest.mark.usefixtures("two_threads"),
]

OPS = torch.ops.interop_kernels
SIZED = {
    "combine": lambda n: (torch.randn(n, n + 1), torch.randn(n + 1)),
    "close": lambda n: (torch.randn(n, n + 1), torch.randn(n, 1)),
    "total": lambda n: (torch.randn(n, n + 1), [0], False),
    "squared_explicit": lambda n: (torch.randn(n),),
}
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@pytest.fixture(scope="session")
def operations(site):
    return import_from(site, "operations")


LENGTHS = (1, 7, 8, 9, 64, 100)
RESULTS = """
import sys, torch, operations
inputs, file = torch.load(sys.argv[1]), sys.argv[2]
torch.save([operations.binary(a, b) for a, b in inputs], file)
"""


@pytest.mark.long
@each_instruction_set
def test_each_instruction_set(site, tmp_path, capability):
    inputs = [(values((n,), dtype), values((n,), dtype)) for dtype in DTYPES for n in LENGTHS]
    torch.save(inputs, tmp_path / "inputs")
    environment = os.environ | {"ATEN_CPU_CAPABILITY": capability, "PYTHONPATH": str(site)}
    run([sys.executable, "-P", "-c", RESULTS, tmp_path / "inputs", tmp_path / "results"], env=environment)
    for (a, b), result in zip(inputs, torch.load(tmp_path / "results"), strict=True):
        check_same(result, a * 2 + b)


@pytest.fixture(autouse=True)
def _loaded(operations):
    """Imports the module that registers the operators."""


class TestElementwise:
    @settings(deadline=None, max_examples=300)
    @given(pairs())
    def test_broadcasts_and_promotes_as_torch(self, operations, pair):
        a, b = pair
        check_same(operations.binary(a, b), a * 2 + b)

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 1000, 100_001])
    def test_every_length(self, operations, dtype, n):
        """Full vectors and the remainder after the last; an input of one element; strided inputs."""
        a, b = values((2 * n,), dtype), values((n,), dtype)
        for left, right in ((a[:n], b), (a[:n], b[:1]), (a[:1], b), (a[:1].expand(n), b), (a[::2], b), (a[n:], b)):
            check_same(operations.binary(left, right), left * 2 + right)

    @settings(deadline=None, max_examples=100)
    @given(strided([3, 40], [torch.float32, torch.float64]), st.floats(0.5, 2))
    def test_the_layout_does_not_change_a_bit(self, operations, x, beta):
        x = x / 7
        beta = torch.tensor(beta, dtype=x.dtype)
        assert torch.equal(operations.swish_forward(x, beta), operations.swish_forward(x.contiguous().clone(), beta))
        x = x.double()
        assert torch.equal(operations.recurrence(x), operations.recurrence(torch.stack([x, x], -1)[..., 0]))

    @pytest.mark.parametrize("number", [2, 2.5, 2**40])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
    def test_numbers_promote_as_in_torch(self, operations, dtype, number):
        a = values((3, 4), dtype)
        check_same(operations.with_number(a, number), a * 2 + number)

    @pytest.mark.parametrize("number", [2, True, 0.5, 1 + 2j])
    def test_scalars(self, operations, number):
        a = values((3,), torch.float32)
        check_same(operations.with_scalar(a, number), torch.tensor(2 * number).to((a + number).dtype) + a)

    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_a_function_of_floats(self, operations, dtype):
        x, beta = torch.randn(100, dtype=torch.float64).to(dtype), torch.tensor(1.5, dtype=dtype)
        wide = torch.float64 if dtype is torch.float64 else torch.float32
        expected = x.to(wide) / (1 + torch.exp(-beta.to(wide) * x.to(wide)))
        torch.testing.assert_close(operations.swish_forward(x, beta), expected.to(dtype))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_rounds_to_16_bits_as_torch(self, operations, dtype):
        """Doubles every number of 16 bits, and adds values that make results fall between two numbers."""
        a = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
        for b in (torch.randn(2**16).to(dtype), torch.tensor([0.0], dtype=dtype), a.flip(0)):
            expected = (a.float() * 2 + b.float()).to(dtype)
            for got in (operations.binary(a, b), operations.binary(a.repeat_interleave(2)[::2], b)):
                assert got.dtype is dtype
                torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)

    @pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.bool], ids=str)
    def test_makes_floats_of_integers_as_torch(self, operations, dtype):
        x = values((10,), dtype)
        got = operations.swish_forward(x, x[:1])
        torch.testing.assert_close(got, x / (1 + torch.exp(-x[:1].float() * x)))
        torch.set_default_dtype(torch.float64)
        try:
            assert operations.swish_forward(x, x).dtype == torch.sin(x).dtype == torch.float64
        finally:
            torch.set_default_dtype(torch.float32)

    @pytest.mark.filterwarnings("ignore:ComplexHalf support")
    @pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.complex32])
    def test_a_dtype_without_a_function(self, operations, dtype):
        name = {torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble", torch.complex32: "ComplexHalf"}
        x = torch.ones(3, dtype=dtype)
        message = f"\"swish\" not implemented for '{name[dtype]}', only for Float, Double"
        with pytest.raises(NotImplementedError, match=message):
            operations.swish_forward(x, x)

    def test_a_dtype_without_a_function_leaves_out_alone(self, operations):
        out = torch.empty(0)
        before = out._version
        with pytest.raises(NotImplementedError, match="\"combine\" not implemented for 'Short'"):
            operations.binary_out(ONE.short(), ONE.short(), out)
        assert (out.shape, out._version) == ((0,), before)

    def test_layout_of_the_result_is_torchs(self, operations):
        for a in (torch.randn(2, 3, 4).permute(2, 0, 1), torch.randn(2, 8, 3, 3).to(memory_format=torch.channels_last)):
            assert operations.binary(a, a).stride() == (a + a).stride()

    def test_conjugates_and_negatives_are_values(self, operations):
        z = torch.tensor([1 + 2j, 3 - 1j])
        check_same(operations.binary(z.conj(), z), z.conj() * 2 + z)
        check_same(operations.binary(z.conj().imag, z.imag), z.conj().imag * 2 + z.imag)

    @pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:The PyTorch API of nested")
    @pytest.mark.parametrize("what", sorted(REFUSED.keys() - {"conj", "neg"}))
    def test_refuses_what_has_no_values(self, operations, what):
        make, error, message = REFUSED[what]
        mixed = RuntimeError, "Expected all tensors to be on the same device.* meta and cpu"
        expected = mixed if what == "meta" else (error, f"input 1'? (must|is) .*{message}")
        with pytest.raises(expected[0], match=expected[1]):
            operations.binary(ONE, make())
        with pytest.raises(error, match=f"'out' must .*{message}"):
            operations.binary_out(ONE, ONE, make())

    def test_errors_of_the_function(self, operations, capfd):
        for n, place in ((3, 1), (100_000, 99_999)):
            x = torch.ones(n)
            assert torch.equal(operations.checked(x), x)
            x[place] = -5
            with pytest.raises(operations.Told) as caught:
                operations.checked(x)
            assert caught.value.args == ("negative", -5)
        assert capfd.readouterr().err == ""

    def test_a_function_that_uses_python(self, operations):
        """It runs on threads that Python does not know."""
        x = torch.arange(70_000.0)
        assert torch.equal(operations.with_gil(x), x + 1)

    def test_division_by_zero(self, operations, capfd):
        x = torch.tensor([1.0, 0.0, -0.0, 4.0], dtype=torch.float64)
        check_same(operations.inverse(x, True), 1 / x)
        with pytest.raises(ZeroDivisionError):
            operations.inverse(x, False)
        assert capfd.readouterr().err == ""


class TestOut:
    @settings(deadline=None, max_examples=100)
    @given(pairs((torch.float32, torch.int64)))
    def test_takes_what_fits(self, operations, pair):
        a, b = pair
        expected = a * 2 + b
        out = torch.empty(0, dtype=torch.float64)
        assert operations.binary_out(a, b, out) is out
        check_same(out, expected.double())

    def test_in_place_and_strided(self, operations):
        a, b = values((4, 4), torch.float32), values((4, 4), torch.float32)
        expected = a * 2 + b
        base = torch.zeros(4, 8)
        operations.binary_out(a, b, base[:, ::2])
        assert torch.equal(base[:, ::2], expected)
        assert not base[:, 1::2].any()
        version = a._version
        operations.binary_out(a, b, a)
        assert torch.equal(a, expected)
        assert a._version == version + 1

    def test_refuses(self, operations):
        with pytest.raises(TypeError, match="'out' must be a tensor, got an undefined one"):
            operations.binary_out(ONE, ONE, None)
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
            operations.binary_out(ONE, ONE, ONE.long())
        with pytest.raises(RuntimeError, match="'out' must not require grad"):
            operations.binary_out(ONE, ONE, torch.ones(3, requires_grad=True))
        with pytest.raises(RuntimeError, match="'out' must have memory of its own"):
            operations.binary_out(ONE, ONE, torch.ones(1).expand(3))
        x = torch.ones(4)
        with pytest.raises(RuntimeError, match="memory"):
            operations.binary_out(x[1:], ONE, x[:-1])


class TestPredicates:
    def test_truth_values(self, operations):
        a, b = torch.randn(1000), torch.randn(1000)
        expected = (a - b < 1) & (b - a < 1)
        check_same(operations.close(a, b), expected)
        check_same(operations.close(a.half(), b.half()), (a.half().float() - b.half().float()).abs() < 1)
        for dtype in (torch.bool, torch.float64, torch.uint8):
            out = torch.empty(0, dtype=dtype)
            assert operations.close(a, b, out) is out
            check_same(out, expected.to(dtype))
        with pytest.raises(TypeError, match=r"'out' must .*meta"):
            operations.close(a, b, torch.empty(0, device="meta"))
        with pytest.raises(RuntimeError, match="'out' must not require grad"):
            operations.close(a, b, torch.ones(1000, requires_grad=True))

    def test_of_truth_values(self, operations):
        a, b = torch.rand(100) < 0.5, torch.rand(100) < 0.5
        check_same(operations.alike(a, b), a == b)
        odd = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)  # bytes that are invalid as a C++ bool
        assert operations.alike(odd, odd.flip(0)).tolist() == [False, True, True, False]


class TestDerivatives:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("shapes", [((3, 4), ()), ((3, 4), (3, 1)), ((4,), (3, 4)), ((2, 1), (1, 3))])
    def test_agree_with_autograd(self, operations, dtype, shapes):
        x, beta = (torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)
        y = x / (1 + torch.exp(-beta * x))
        grad = torch.randn_like(y)
        expected = torch.autograd.grad(y, (x, beta), grad)
        got = operations.swish_backward(grad, x.detach(), beta.detach())
        torch.testing.assert_close(got, expected)
        assert [g.shape for g in got] == [x.shape, beta.shape]

    def test_have_the_dtype_of_the_input(self, operations):
        x, beta = torch.randn(3), torch.randn((), dtype=torch.float64)
        of_x, of_beta = operations.swish_backward(torch.ones(3), x, beta[None])
        assert (of_x.dtype, of_beta.dtype) == (torch.float32, torch.float64)


GRAPH = r"requires grad, and what is computed here belongs to no graph, .* under NoGradGuard or on .detach\(\)$"


def same_but_for_values(meta, real):
    """Compares metadata, with strides only of sizes above 1."""
    strides = [[step for step, size in zip(t.stride(), t.shape, strict=True) if size > 1] for t in (meta, real)]
    return (meta.shape, meta.dtype) == (real.shape, real.dtype) and (strides[0] == strides[1] or not real.numel())


def on_meta(x):
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


class TestMeta:
    """Inputs without values give a result without values, so one function is the kernel for CPU and for Meta."""

    @settings(deadline=None, max_examples=200)
    @given(pairs())
    @example((torch.ones(1, 2), torch.ones(32).half().as_strided((1, 2, 1, 2), (8, 2, 1, 4))))  # with gaps
    @example((torch.ones(1, 2), torch.ones(32).half().as_strided((1, 2, 1, 2), (0, 1, 2, 0))))  # overlapping
    def test_elementwise(self, pair):
        a, b = pair
        for op in (OPS.combine, OPS.close):
            try:
                real = op(a, b)
            except NotImplementedError:
                continue
            assert same_but_for_values(op(on_meta(a), on_meta(b)), real)
            with FakeTensorMode() as mode:
                made = op(mode.from_tensor(a), mode.from_tensor(b))
            assert same_but_for_values(made, real)
            assert made.device.type == "cpu"

    @pytest.mark.parametrize("keepdim", [False, True])
    @pytest.mark.parametrize("dims", [[], [0], [0, -1]])
    def test_reduction(self, dims, keepdim):
        x = torch.randn(2, 3, 4).permute(2, 0, 1)
        assert same_but_for_values(OPS.total(on_meta(x), dims, keepdim), OPS.total(x, dims, keepdim))

    def test_out_and_numbers(self, operations):
        x = torch.empty(2, 3, device="meta")
        out = torch.empty(0, device="meta", dtype=torch.float64)
        assert operations.binary_out(x, x, out) is out
        assert (out.shape, out.dtype) == (x.shape, torch.float64)
        out = torch.empty(0, device="meta")
        assert operations.close(x, x, out).shape == x.shape
        assert operations.with_number(x, 2).shape == operations.with_number(x, 2.5).shape == x.shape
        assert operations.binary(x, torch.tensor(2.0)).shape == x.shape
        with pytest.raises(TypeError, match="'out' must have memory, got a tensor on the meta device"):
            operations.binary_out(ONE, ONE, out)
        with pytest.raises(RuntimeError, match="same device"):
            operations.binary_out(x, x, ONE)

    @pytest.mark.parametrize(("backend", "dynamic"), [("aot_eager", False), ("aot_eager", True), ("inductor", True)])
    @compiles("asan", "ubsan", "leaks")
    @pytest.mark.long
    def test_compiled(self, backend, dynamic):
        """Works with static and with symbolic sizes."""
        for function in (
            lambda x: OPS.combine(x, x[0]) * 2,
            lambda x: OPS.close(x.t(), x.t()[:1]),
            lambda x: OPS.total(x.t(), [-1], False) + 1,
        ):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)
            for n in (3, 5):
                x = torch.randn(n, 4)
                torch.testing.assert_close(compiled(x), function(x))

    @compiles("asan", "ubsan", "leaks")
    def test_opcheck(self):
        x = torch.randn(3, 4)
        for op, arguments in ((OPS.combine, (x, x[0])), (OPS.close, (x, x)), (OPS.total, (x, [0], True))):
            assert set(torch.library.opcheck(op.default, arguments).values()) == {"SUCCESS"}

    @compiles("asan", "ubsan", "leaks")
    @pytest.mark.long
    @pytest.mark.parametrize("name", SIZED)
    def test_one_compilation_for_all_sizes(self, name):
        check_dynamic_shapes(getattr(OPS, name), SIZED[name])

    def test_the_sizes_of_all_operators(self):
        text = (PROJECTS / "kernels" / "operations.pyx").read_text()
        defined = set(re.findall(r'\bdefine\("interop_kernels::(\w+)"', text))
        without_fake_kernel = {"cubed", "squared", "squared_in_parts"}
        cannot_be_traced = {"squared_implicit"}  # as the test below shows
        assert defined == SIZED.keys() | without_fake_kernel | cannot_be_traced

    @compiles("asan", "ubsan", "leaks")
    def test_where_torch_compile_traces(self):
        """It raises in an implicit kernel, where torch would trace the operation itself."""
        compiled = torch.compile(OPS.squared_implicit, backend="aot_eager", fullgraph=True)
        with pytest.raises(
            RuntimeError, match=r"squared: input 0 is a FakeTensor, .* torch.export is tracing here. Make"
        ):
            compiled(torch.ones(3))


class TestGraphs:
    """A loop's result has no gradient. If autograd would record one, the operation raises and returns no constant."""

    def test_inputs_that_require_grad(self, operations):
        a, b = torch.ones(3, dtype=torch.float64), torch.ones(3, requires_grad=True)
        for call in (
            lambda: operations.binary(a, b),
            lambda: operations.binary_out(a, b, torch.empty(3, dtype=torch.float64)),
            lambda: operations.with_number(b, 2),
        ):
            with pytest.raises(RuntimeError, match=f"^combine: input [01] {GRAPH}"):
                call()
            with torch.no_grad():
                assert not call().requires_grad
        for call in (lambda: operations.total(b, 0, False), lambda: operations.total_of_both(b[None])):
            with pytest.raises(RuntimeError, match=f"^total: input {GRAPH}"):
                call()
            with torch.inference_mode():
                assert call().numel() > 0

    def test_truth_values_have_no_gradient(self, operations):
        a = torch.ones(3, requires_grad=True)
        assert operations.close(a, a).all()
        assert operations.close(a, a, torch.empty(3)).all()

    def test_forward_gradients(self, operations):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(torch.ones(3), torch.ones(3))
            for call in (lambda: operations.binary(x, x), lambda: operations.total(x, 0, False)):
                with pytest.raises(NotImplementedError, match="has a forward gradient, which would be lost"):
                    call()

    @pytest.mark.parametrize("way", ["operator", "function"])
    def test_a_backward_is_not_differentiated_as_a_constant(self, operations, way):
        x = torch.randn(3, requires_grad=True)
        y = OPS.cubed(x) if way == "operator" else operations.cubed(x)
        torch.testing.assert_close(y, x**3)
        (grad,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
        torch.testing.assert_close(grad, 3 * x**2)
        with pytest.raises(RuntimeError, match=f"^cubed_backward: input 1 {GRAPH}"):
            torch.autograd.grad(y.sum(), x, create_graph=True)

    def test_kernels_below_autograd(self):
        """They need no check for gradients, even if the operator has none; torch warns of that."""
        x = torch.randn(5000, 20, requires_grad=True)
        for name in ("squared", "squared_explicit", "squared_in_parts"):
            y = getattr(OPS, name)(x)
            torch.testing.assert_close(y.detach(), x.detach() ** 2)
            with pytest.warns(UserWarning, match=f"interop_kernels::{name}: an autograd kernel was not registered"):
                y.sum().backward()
            assert x.grad is None

    def test_kernels_above_autograd(self):
        x = torch.randn(3, requires_grad=True)
        with pytest.raises(RuntimeError, match=f"^squared: input 0 {GRAPH}"):
            OPS.squared_implicit(x)
        torch.testing.assert_close(OPS.squared_implicit(x.detach()), x.detach() ** 2)

    def test_parts_of_a_loop(self, operations):
        """Parts raise on whichever thread they run."""
        x = torch.randn(5000, 20, requires_grad=True)
        with pytest.raises(RuntimeError, match=f"^squared: input 0 {GRAPH}"):
            operations.squared_in_parts(x)
        with torch.no_grad():
            torch.testing.assert_close(operations.squared_in_parts(x), x**2)


class TestReductions:
    @settings(deadline=None, max_examples=200)
    @given(st.data())
    def test_a_sum(self, operations, data):
        dtypes = [torch.float32, torch.float64, torch.int64, torch.complex64, torch.complex128, torch.bfloat16]
        x = data.draw(strided(data.draw(st.lists(st.integers(0, 40), max_size=3)), dtypes))
        dims = (
            data.draw(st.lists(st.integers(-x.dim(), x.dim() - 1), unique_by=lambda d: d % x.dim())) if x.dim() else []
        )
        keepdim = data.draw(st.booleans())
        expected = x.double().sum(dims, keepdim) if dims and not x.is_complex() else x.sum(dims, keepdim) if dims else x
        check_same(operations.total(x, dims, keepdim), expected.to(x.dtype))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.float16])
    @pytest.mark.parametrize("shape", [(1,), (31,), (32,), (33,), (100_003,), (500, 301), (3, 40_000), (40_000, 3)])
    def test_a_maximum(self, operations, dtype, shape):
        x = (torch.randn(shape) * 100).to(dtype)
        check_same(operations.largest(x), x.max())
        for dim in range(len(shape)):
            check_same(operations.largest(x, dim), x.amax(dim))
            check_same(operations.largest(x.mT, dim, True) if len(shape) > 1 else operations.largest(x[::2], 0, True),
                       x.mT.amax(dim, True) if len(shape) > 1 else x[::2].amax(0, True))  # fmt: skip

    def test_dimensions_in_c(self, operations):
        x = values((3, 4, 5), torch.float32)
        check_same(operations.total_of_both(x), x.sum((0, -1)))

    def test_without_elements(self, operations):
        assert operations.largest(torch.empty(0)) == -torch.inf
        check_same(operations.total(torch.empty(0, 3), [0], False), torch.zeros(3))
        check_same(operations.total(torch.empty(0, 3), [1], True), torch.zeros(0, 1))

    def test_refuses(self, operations):
        with pytest.raises(IndexError, match="Dimension out of range"):
            operations.total(ONE, [1], False)
        with pytest.raises(RuntimeError, match="appears multiple times"):
            operations.total(torch.ones(2, 2), [0, -2], False)
        with pytest.raises(NotImplementedError, match="not implemented for 'Short', only for Float, Double"):
            operations.largest(ONE.short())
        with pytest.raises(TypeError, match=r"'input' must have layout torch.strided"):
            operations.largest(ONE.to_sparse())
        with pytest.raises(TypeError, match="dims"):
            operations.total(ONE, "x", False)

    def test_errors_of_the_function(self, operations):
        x = torch.ones(100_000)
        assert operations.raising_total(x) == 100_000
        x[-1] = -2
        with pytest.raises(operations.Told) as caught:
            operations.raising_total(x)
        assert caught.value.args == ("negative", -2)
