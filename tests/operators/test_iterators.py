"""at.TensorIterator in Cython computes what torch does, and rejects tensors that would touch the wrong memory."""

import re

import pytest
import torch
from conftest import import_from
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.testing._internal.two_tensor import TwoTensor

pytestmark = [
    pytest.mark.native,
    pytest.mark.usefixtures("two_threads"),
]

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.complex64, torch.complex128),
)


@pytest.fixture(scope="session")
def iterators(site):
    return import_from(site, "iterators")


def values(shape, dtype):
    """Small integers, with which all dtypes compute exactly."""
    return torch.randint(0, 9, shape).to(dtype)


@st.composite
def strided(draw, shape, dtypes=DTYPES):
    """A tensor that broadcasts to `shape`, with any order of dimensions and steps between elements."""
    shape = [1 if draw(st.integers(0, 5)) == 0 else size for size in shape[draw(st.integers(0, len(shape))) :]]
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in shape]
    base = values([shape[d] * steps[d] for d in order], draw(st.sampled_from(dtypes)))
    x = base.permute([order.index(d) for d in range(len(shape))])
    return x[tuple(slice(None, None, step) for step in steps)]


@st.composite
def pairs(draw, dtypes=DTYPES):
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    a, b = draw(strided(shape, dtypes)), draw(strided(shape, dtypes))
    # A half and a complex number give complex32 or bcomplex32, for which there are no functions.
    assume(torch.result_type(a, b) in DTYPES)
    return a, b


def expected_of(a, b):
    return a * 2 + b


def check_same(got, expected):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert torch.equal(got, expected)


class TestBinary:
    @settings(deadline=None, max_examples=300)
    @given(pairs(), st.sampled_from([1, 7, 32768]))
    def test_broadcasts_and_promotes_as_torch(self, iterators, pair, grain):
        check_same(iterators.binary("binary_op", None, *pair, grain), expected_of(*pair))

    @pytest.mark.parametrize("shape", [(100_000,), (300, 400), (3, 1, 50_000), (70_000, 2)])
    def test_large_ones_on_several_threads(self, iterators, shape):
        a, b = values(shape, torch.float32), values(shape, torch.float32)
        for left, right in ((a, b), (a.mT if a.dim() > 1 else a, b.mT[..., :1] if a.dim() > 1 else b[:1])):
            check_same(iterators.binary("binary_op", None, left, right), expected_of(left, right))

    @pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float32, torch.float64])
    def test_float_op(self, iterators, dtype):
        a, b = values((3, 4), dtype), values((4,), torch.int64)
        got = iterators.binary("binary_float_op", None, a, b)
        check_same(got, expected_of(a, b).to(torch.add(a, b).div(1).dtype))

    def test_comparison(self, iterators):
        a, b = torch.randn(3, 4), values((3, 1), torch.int64)
        check_same(iterators.binary("comparison_op", None, a, b), a < b)
        out = torch.empty(0, dtype=torch.bool)
        assert iterators.binary("comparison_op", out, a, b) is out
        assert torch.equal(out, a < b)
        with pytest.raises(TypeError, match=r"'output 0' must have dtype torch.bool, got torch.float32"):
            iterators.binary("comparison_op", torch.empty(3, 4), a, b)

    def test_tensors_that_nobody_else_owns(self, iterators):
        a, b = values((1000,), torch.float32), values((1000,), torch.float64)
        check_same(iterators.binary_of_temporaries(a, b), expected_of(-a, -b).float())

    def test_layout_of_the_result_is_torchs(self, iterators):
        for a in (torch.randn(2, 3, 4).permute(2, 0, 1), torch.randn(2, 8, 3, 3).to(memory_format=torch.channels_last)):
            assert iterators.binary("binary_op", None, a, a).stride() == (a + a).stride()


class TestOutputs:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.complex64])
    def test_are_cast_and_resized(self, iterators, dtype):
        a, b = values((3, 4), torch.float32), values((4,), torch.int32)
        out = torch.empty(0, dtype=dtype)
        assert iterators.binary("binary_op", out, a, b) is out
        assert torch.equal(out, expected_of(a, b).to(dtype))

    def test_are_not_cast_where_torch_would_not(self, iterators):
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type Int"):
            iterators.binary("binary_op", torch.empty(3, dtype=torch.int32), torch.ones(3), torch.ones(3))

    def test_strided(self, iterators):
        base = torch.zeros(4, 6)
        a, b = values((3, 4), torch.float32), values((3, 4), torch.float32)
        iterators.binary("binary_op", base.t()[::2], a, b)
        assert torch.equal(base.t()[::2], expected_of(a, b))
        assert not base.t()[1::2].any()

    def test_in_place(self, iterators):
        a, b = values((3, 4), torch.float32), values((3, 4), torch.float32)
        expected = expected_of(a, b)
        iterators.binary("binary_op", a, a, b)
        assert torch.equal(a, expected)

    def test_writing_counts_as_one_operation_in_place(self, iterators):
        a, out = torch.ones(3), torch.empty(3)
        before = out._version, a._version
        iterators.twice(a, out)
        assert (out._version, a._version) == (before[0] + 1, before[1])
        w = torch.ones(3, requires_grad=True)
        y = (w * out).sum()
        iterators.twice(a, out)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()

    def test_cast_outputs_count_too(self, iterators):
        out = torch.empty(3, dtype=torch.float64)
        before = out._version
        iterators.binary("binary_op", out, torch.ones(3), torch.ones(3))
        assert out._version > before

    def test_that_share_memory_are_refused(self, iterators):
        a = torch.ones(5)
        with pytest.raises(RuntimeError, match=r"single memory location|written-to tensor|overlap"):
            iterators.twice(a[:-1], a[1:])
        with pytest.raises(RuntimeError, match="'output 0' must have memory of its own for each element"):
            iterators.twice(torch.ones(3), torch.ones(1).expand(3))

    def test_that_autograd_knows_are_refused(self, iterators):
        leaf = torch.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="'output 0' must not require grad to be written to"):
            iterators.twice(torch.ones(3), leaf)
        with torch.no_grad():
            iterators.twice(torch.ones(3), leaf)
        assert torch.equal(leaf.detach(), torch.full((3,), 2.0))

    def test_inputs_that_require_grad(self, iterators):
        """They raise: to autograd, the loop's results would be constants."""
        a = torch.ones(3, requires_grad=True)
        for b in (a, torch.ones(3, dtype=torch.float64)):
            with pytest.raises(
                RuntimeError,
                match=r"at\.TensorIterator: input 0 requires grad, and what is computed here belongs to no",
            ):
                iterators.binary("binary_op", None, a, b)
            with torch.no_grad():
                assert not iterators.binary("binary_op", None, a, b).requires_grad
            assert not iterators.binary("comparison_op", None, a, b).any()  # booleans have no gradient
        out = torch.zeros(3)
        with pytest.raises(RuntimeError, match="requires grad"):
            iterators.twice(a, out)
        assert out._version == 0

    def test_made_of_a_declared_shape(self, iterators):
        check_same(iterators.made((2, 3)), torch.full((2, 3), 3.0))
        check_same(iterators.made(()), torch.tensor(3.0))

    def test_filled(self, iterators):
        x = torch.zeros(3, 4).t()
        iterators.fill(x[1:], 5)
        assert x.tolist() == [[0.0] * 3] + [[5.0] * 3] * 3

    def test_run_again(self, iterators):
        a, b, out = torch.ones(3), torch.ones(3), torch.empty(3)
        assert torch.equal(iterators.run_twice(a, b, out), torch.full((3,), 3.0))
        out = torch.empty(3, dtype=torch.float64)
        with pytest.raises(RuntimeError, match="has run and has cast its outputs; build another one"):
            iterators.run_twice(a, b, out)
        assert torch.equal(out, torch.full((3,), 3.0, dtype=torch.float64))


class TestLoops:
    @settings(deadline=None, max_examples=100)
    @given(st.lists(st.integers(0, 5), max_size=4).flatmap(lambda s: strided(s, [torch.float32])), st.booleans())
    def test_in_one_and_two_dimensions(self, iterators, x, two_dimensional):
        check_same(iterators.twice(x, None, two_dimensional, 1), x * 2)

    @pytest.mark.parametrize("kind", [0, 1, 2])
    def test_errors_reach_the_caller(self, iterators, capfd, kind):
        for shape in ((100,), (10, 10)):
            x = torch.ones(shape)
            x[-1] = -1
            with pytest.raises(iterators.Told, match="2d" if kind == 2 else "negative"):
                iterators.raising(x, kind)
            with pytest.raises(iterators.Told):
                iterators.raising(x.t()[::2], kind) if x.dim() == 2 else iterators.raising(-x[::2], kind)
        assert capfd.readouterr().err == ""

    @pytest.mark.filterwarnings("ignore:ComplexHalf support")
    @pytest.mark.parametrize("dtype", [torch.bool, torch.complex32, torch.uint16])
    def test_a_dtype_without_a_specialisation(self, iterators, dtype):
        x = torch.ones(3, dtype=dtype)
        name = {torch.bool: "Bool", torch.complex32: "ComplexHalf", torch.uint16: "UInt16"}[dtype]
        with pytest.raises(
            NotImplementedError,
            match=f"\"combine\" not implemented for '{name}', only for Float, Double, Half, BFloat16",
        ):
            iterators.binary("binary_op", None, x, x)


ONE = torch.ones(3)


def fake(device="cpu"):
    with FakeTensorMode():
        return torch.empty(3, device=device)


def shrunk():
    x = torch.ones(3)
    x.untyped_storage().resize_(4)
    return x


REFUSED = {  # tensors without values in the CPU's memory, and the errors
    "meta": (lambda: torch.ones(3, device="meta"), TypeError, "meta device"),
    "sparse": (ONE.to_sparse, TypeError, "layout torch.strided"),
    "conj": (ONE.to(torch.complex64).conj, RuntimeError, "resolve_conj"),
    "neg": (lambda: ONE.to(torch.complex64).conj().imag, RuntimeError, "resolve_neg"),
    "zero": (lambda: torch._efficientzerotensor((3,)), ValueError, "zero tensor"),
    "quantized": (lambda: torch.quantize_per_tensor(ONE, 1.0, 0, torch.quint8), TypeError, "quantized"),
    "nested": (lambda: torch.nested.nested_tensor([ONE]), TypeError, "nested"),
    "fake": (fake, TypeError, "FakeTensor"),
    "fake cuda": (lambda: fake("cuda:0"), TypeError, "FakeTensor"),
    "subclass": (lambda: TwoTensor(ONE, ONE), TypeError, "TwoTensor"),
    "functional": (lambda: torch._to_functional_tensor(ONE), TypeError, "(f|F)unctional"),
    "resized": (shrunk, ValueError, "within its storage"),
}


class TestRefusals:
    @pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:The PyTorch API of nested")
    @pytest.mark.parametrize("what", list(REFUSED))
    def test_inputs_and_outputs(self, iterators, what):
        make, error, message = REFUSED[what]
        tensor = make()
        with pytest.raises(error, match=f"input 1'? (must|is) .*{message}"):
            iterators.binary("binary_op", None, ONE, tensor)
        with pytest.raises(error, match=f"'output 0' must .*{message}"):
            iterators.binary("binary_op", tensor, ONE, ONE)

    def test_of_transforms(self, iterators):
        for transform in (torch.vmap, lambda f: torch.func.grad(lambda x: f(x).sum())):
            with pytest.raises(TypeError, match=r"'input 0' must .*torch.func transform"):
                transform(iterators.twice)(torch.ones(3))

    def test_dual_outputs(self, iterators):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(3), torch.ones(3))
            with pytest.raises(RuntimeError, match="'output 0' must not be a dual tensor"):
                iterators.twice(ONE, dual)

    @pytest.mark.parametrize(
        ("what", "error", "message"),
        [
            ("unbuilt", ValueError, "has not been built"),
            ("nothing", ValueError, "needs a tensor"),
            ("order", ValueError, "outputs must be added before inputs"),
            ("NULL", ValueError, "must not be NULL"),
            ("grain", ValueError, "'grain' .*got -1"),
            ("output", IndexError, "output 1 of a TensorIterator that has 1"),
            ("input", IndexError, "input -1 of a TensorIterator that has 1"),
            ("dtype", IndexError, "tensor 2 of a TensorIterator that has 2"),
            ("strides", IndexError, "tensor 2 of a TensorIterator that has 2"),
            ("common_dtype", ValueError, "has no common dtype"),
            ("outputs of parallel_reduce", ValueError, "one output and one input, got 1 and 2"),
            ("dtypes of parallel_reduce", TypeError, "the same dtype, got torch.float64 and torch.float32"),
            ("undefined output of reduce_op", ValueError, "output 0 of a reduction must be defined"),
            ("undefined input", TypeError, "'input 0' must be a tensor, got an undefined one"),
        ],
    )
    def test_misuse(self, iterators, what, error, message):
        with pytest.raises(error, match=message):
            iterators.wrong(what, torch.ones(3))

    @pytest.mark.parametrize(
        ("outputs", "inputs", "options", "shape", "error", "message"),
        [
            ([None], [], {}, None, ValueError, "output 0 needs a static dtype and shape"),
            ([None], [], {"dtype": torch.float32}, None, ValueError, "output 0 needs a static dtype and shape"),
            ([torch.ones(3)], [torch.ones(2)], {}, [4], ValueError, r"'output 0' must have the static shape \[4\]"),
            ([None], [torch.ones(1)], {}, [4], ValueError, r"'input 0' must have the static shape \[4\], got \[1\]"),
            ([None], [ONE, ONE.double()], {}, None, TypeError, "'input 1' must have the dtype of the others"),
            ([None], [ONE, ONE.int()], {"check_all_same_dtype": False}, None, TypeError, "promote_inputs_to_common"),
            ([None], [ONE], {"promote_integer_inputs_to_float": True}, None, ValueError, "needs promote_inputs"),
            ([torch.ones(1)], [ONE], {"resize_outputs": False}, None, RuntimeError, r"shape \[1\] doesn't match"),
            ([None], [torch.ones(2), ONE], {}, None, RuntimeError, "must match the size"),
        ],
    )
    def test_options(self, iterators, outputs, inputs, options, shape, error, message):
        with pytest.raises(error, match=message):
            iterators.build(outputs, inputs, options, shape)


class TestQueries:
    def test_of_an_elementwise_operation(self, iterators):
        a, b = torch.ones(3, 4), torch.ones(4, dtype=torch.float64)
        got = iterators.build([None], [a, b], {"promote_inputs_to_common_dtype": True})
        assert {k: got[k] for k in ("ndim", "ntensors", "noutputs", "ninputs", "numel", "num_output_elements")} == {
            "ndim": 2, "ntensors": 3, "noutputs": 1, "ninputs": 2, "numel": 12, "num_output_elements": 12
        }  # fmt: skip
        assert (got["num_reduce_dims"], got["is_contiguous"], got["shape"]) == (0, False, (4, 3))
        assert got["strides"] == [(8, 32), (8, 32), (8, 0)]
        assert got["dtypes"] == [torch.float64] * 3
        assert got["common_dtype"] is torch.float64
        check_same(got["inputs"][0], a.double())
        assert got["inputs"][1] is b

    def test_of_a_reduction(self, iterators):
        out = torch.zeros(3, 1)
        got = iterators.build([out], [torch.ones(3, 4)], {"is_reduction": True, "resize_outputs": False})
        assert (got["num_reduce_dims"], got["num_output_elements"], got["numel"]) == (1, 3, 12)
        assert got["outputs"][0] is out

    def test_options_reach_torch(self, iterators):
        x = torch.ones(3, 4).t()
        assert iterators.build([None], [x], {})["shape"] == (12,)
        assert iterators.build([torch.empty(4, 3)], [x], {"enforce_linear_iteration": True})["shape"] == (3, 4)
        mixed = {"check_all_same_dtype": False}
        assert iterators.build([torch.empty(3)], [ONE, ONE.int()], mixed)["dtypes"][2] is torch.int32
        with pytest.raises(RuntimeError, match="can't be cast"):
            iterators.build([ONE.int()], [ONE], {"enforce_safe_casting_to_output": True, **mixed})
        assert iterators.build([None], [ONE], {"dtype": torch.bool, **mixed})["outputs"][0].dtype is torch.bool
        floats = {"promote_inputs_to_common_dtype": True, "promote_integer_inputs_to_float": True}
        assert iterators.build([None], [ONE.int()], floats)["common_dtype"] is torch.float32
        cast = {"promote_inputs_to_common_dtype": True, "cast_common_dtype_to_outputs": True}
        assert iterators.build([ONE.double()], [ONE], cast)["dtypes"][0] is torch.float32


class TestReductions:
    @settings(deadline=None, max_examples=100)
    @given(st.data())
    def test_agree_with_torch(self, iterators, data):
        shape = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
        dtypes = [torch.float32, torch.float64, torch.int64, torch.complex64]
        x = data.draw(strided(shape, dtypes).filter(lambda x: x.dim()))
        dims = data.draw(st.lists(st.integers(0, x.dim() - 1), min_size=1, unique=True))
        method = data.draw(st.sampled_from(["parallel_reduce", "for_each", "foreach_reduced_elt"]))
        check_same(iterators.total(x, dims, method), x.sum(dims, keepdim=True))

    @pytest.mark.parametrize("method", ["parallel_reduce", "for_each", "foreach_reduced_elt"])
    @pytest.mark.parametrize("dims", [(0, 1), (0,), (1,)])
    def test_large_ones(self, iterators, method, dims):
        x = values((400, 300), torch.float64)
        check_same(iterators.total(x, dims, method), x.sum(dims, keepdim=True))

    def test_errors_reach_the_caller(self, iterators):
        with pytest.raises(iterators.Told) as caught:
            iterators.raise_in_part(torch.ones(5, 4))
        assert caught.value.args == (5,)
        x = torch.ones(100_000)
        assert iterators.total_of_positive(x) == 100_000
        for place in (0, 99_999):
            x = torch.ones(100_000)
            x[place] = -1
            with pytest.raises(iterators.Told, match=re.escape("negative")):
                iterators.total_of_positive(x)
