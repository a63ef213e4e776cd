"""torch's handwritten functions beside its operators behave in Cython as in Python, and reject wrong arguments."""

import random
import re

import numpy as np
import pytest
import torch
from conftest import import_from
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.testing._internal.two_tensor import TwoTensor

import interop
from interop.jit import BuildError

pytestmark = pytest.mark.native


@pytest.fixture(scope="session")
def bounds(site):
    """The sibling module that is compiled with INTEROP_BOUNDSCHECK."""
    return import_from(site, "bounds")


# Indices.

small = st.integers(-6, 6)
parts = st.one_of(st.none(), small)


@st.composite
def tensor_and_index(draw):
    """A tensor of 1 to 4 dimensions, and an index for it, which may be wrong."""
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    x = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)
    index, dim, used_ellipsis = [], 0, False
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["slice", "slice", "int", "none", "ellipsis", "bool", "mask", "tensor", "0-d"]))
        if kind == "none":
            index.append(None)
        elif kind == "bool":
            index.append(draw(st.booleans()))
        elif kind == "ellipsis" and not used_ellipsis:
            used_ellipsis = True
            index.append(...)
            # Later indices count from the end. Their number is not known yet, so they may fit or fail.
            dim = min(dim + 1, len(shape))
        elif dim < len(shape):
            size = shape[dim]
            if kind == "slice":
                step = draw(st.one_of(st.none(), st.integers(1, 3), st.just(-1)))
                index.append(slice(draw(parts), draw(parts), step))
                dim += 1
            elif kind == "int":
                index.append(draw(st.integers(-size - 1, size)))
                dim += 1
            elif kind == "mask":
                over = draw(st.integers(1, min(2, len(shape) - dim)))
                count = torch.Size(shape[dim : dim + over]).numel()
                values = draw(st.lists(st.booleans(), min_size=count, max_size=count))
                index.append(torch.tensor(values, dtype=torch.bool).reshape(shape[dim : dim + over]))
                dim += over
            elif kind == "tensor" and size:
                values = draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=3))
                index.append(torch.tensor(values))
                dim += 1
            elif kind == "0-d" and size:
                index.append(torch.tensor(draw(st.integers(-size, size - 1))))
                dim += 1
    return x, tuple(index or [...])


def key(index):
    """The key that Python passes for these indices: a tuple only if there are several."""
    return index[0] if len(index) == 1 else index


def outcome(function, *arguments):
    """The result of a call, or the class of its error, because torch words a few errors differently for C++."""
    try:
        return function(*arguments)
    except (IndexError, ValueError, TypeError, RuntimeError) as error:
        return type(error)


def same(a, b):
    """Whether two outcomes are the same error, or tensors of the same sizes and values."""
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    return a.shape == b.shape and torch.equal(a, b)


class TestIndices:
    @settings(deadline=None, max_examples=400)
    @given(tensor_and_index())
    def test_reading(self, handwritten, case):
        x, index = case
        expected = outcome(lambda: x[key(index)])
        got = outcome(handwritten.read, x, *index)
        assert same(got, expected), (index, got, expected)
        if isinstance(got, torch.Tensor) and got.numel() and got._is_view() != expected._is_view():
            raise AssertionError("one is a view and the other is not")

    @settings(deadline=None, max_examples=400)
    @given(tensor_and_index(), st.sampled_from(["number", "scalar", "full", "wrong"]))
    def test_writing(self, handwritten, case, kind):
        x, index = case
        target = outcome(lambda: x[key(index)])
        shape = () if isinstance(target, type) else target.shape
        value = {
            "number": -3.5,
            "scalar": torch.tensor(-2.0),
            "full": -torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape),
            "wrong": torch.zeros(7, 11),
        }[kind]

        def assign(tensor):
            tensor[key(index)] = value
            return tensor

        def assign_compiled(tensor):
            handwritten.write(tensor, index, value)
            return tensor

        # An index may select an element twice. The value that remains is undefined, so all values are the same then.
        repeated = any(isinstance(part, torch.Tensor) and part.dtype == torch.int64 and part.dim() for part in index)
        if repeated and kind == "full":
            value = torch.full(shape, -4.0)
        assert same(outcome(assign_compiled, x.clone()), outcome(assign, x.clone())), index

    def test_each_kind_from_c(self, handwritten):
        """Typed indices work without the GIL; the keys are their Python spelling."""
        x, mask, rows = torch.randn(5, 6, 7), torch.rand(5, 6) > 0.5, torch.tensor([0, 2, 4])
        for written, got in handwritten.read_each(x, mask, rows).items():
            expected = eval(f"x[{written}]")
            assert same(got, expected), written

    def test_each_kind_of_value(self, handwritten):
        x, mask, value = torch.randn(4, 5), torch.rand(4, 5) > 0.5, torch.randn(2, 4)
        expected = x.clone()
        expected[0:2, 1:] = value
        expected[mask] = 0.5
        expected[3, -1] = 7
        expected[..., 0] = 2.25
        version = x._version
        handwritten.write_each(x, mask, value)
        assert torch.equal(x, expected)
        assert x._version == version + 4

    def test_gradients_flow_through(self, handwritten):
        x = torch.randn(4, 5, requires_grad=True)
        handwritten.read(x, slice(0, 2), torch.tensor([1, 3])).sum().backward()
        expected = torch.zeros(4, 5)
        expected[0:2, torch.tensor([1, 3])] = 1
        assert torch.equal(x.grad, expected)

    def test_a_truth_value_is_written_as_one(self, handwritten):
        x = torch.zeros(3, dtype=torch.bool)
        handwritten.truth_written(x)
        assert x.tolist() == [False, True, False]

    @pytest.mark.parametrize("index", [[0, 1], "a", 1.5, (1, 2), slice("a", None)])
    def test_what_is_no_index(self, handwritten, index):
        with pytest.raises(TypeError, match=r"must be an integer, truth value, slice|slice indices must be integers"):
            handwritten.read(torch.zeros(3), index)

    def test_numbers_that_fit_no_c_integer(self, handwritten):
        x = torch.arange(5)
        assert torch.equal(handwritten.read(x, slice(-(2**80), 2**80)), x)
        assert torch.equal(handwritten.read(x, slice(-(2**63), 2**63 - 1)), x)
        with pytest.raises((IndexError, OverflowError, RuntimeError)):
            handwritten.read(x, 2**70)
        with pytest.raises(IndexError, match="out of range"):
            handwritten.unsigned_index(x, 2**64 - 1)
        assert handwritten.unsigned_index(x, 4) == 4
        assert handwritten.read(x, np.int64(3)) == 3

    def test_undefined_tensor(self, handwritten):
        with pytest.raises(TypeError, match="must not be an undefined tensor"):
            handwritten.undefined_index(torch.zeros(3))

    def test_slice_of_step_zero(self, handwritten):
        with pytest.raises(ValueError, match="slice step cannot be zero"):
            handwritten.slice_of_step_zero()


# Accessors.


class Subclass(torch.Tensor):
    """Has memory like any tensor."""


def _resized_away():
    x = torch.zeros(2, 3)
    x.untyped_storage().resize_(0)
    return x


def _fake():
    with FakeTensorMode():
        return torch.zeros(2, 3)


REFUSED = {
    "None": (lambda: None, TypeError, "argument 'x' must be a tensor, got an undefined one"),
    "dtype": (lambda: torch.zeros(2, 3).double(), TypeError, "argument 'x' must have dtype torch.float32, got torch.f"),
    "fewer": (lambda: torch.zeros(3), ValueError, r"argument 'x' must have 2 dimensions, got 1 \(sizes \[3\]\)"),
    "more": (lambda: torch.zeros(1, 2, 3), ValueError, "argument 'x' must have 2 dimensions, got 3"),
    "fake": (_fake, TypeError, "got FakeTensor, which implements its operations in Python"),
    "wrapper": (lambda: TwoTensor(torch.zeros(2, 3), torch.zeros(2, 3)), TypeError, "got TwoTensor, which implements"),
    "jagged": (
        lambda: torch.nested.nested_tensor([torch.zeros(3)], layout=torch.jagged),
        TypeError,
        "got NestedTensor, which implements",
    ),
    "nested": (lambda: torch.nested.nested_tensor([torch.zeros(3)]), TypeError, "got a nested one; take its parts"),
    "meta": (lambda: torch.zeros(2, 3, device="meta"), TypeError, "got a tensor on the meta device"),
    "sparse": (lambda: torch.zeros(2, 3).to_sparse(), TypeError, "must have layout torch.strided, got Sparse;"),
    "csr": (lambda: torch.eye(3).to_sparse_csr(), TypeError, "must have layout torch.strided, got SparseCsr;"),
    "mkldnn": (lambda: torch.zeros(2, 3).to_mkldnn(), TypeError, "must have layout torch.strided, got Mkldnn;"),
    "conj": (lambda: torch.zeros(2, 3, dtype=torch.cfloat).conj(), RuntimeError, "apply it with .resolve_conj"),
    "neg": (lambda: torch.zeros(2, 3, dtype=torch.cfloat).conj().imag, RuntimeError, "apply it with .resolve_neg"),
    "zero": (lambda: torch._efficientzerotensor((2, 3)), ValueError, "got a zero tensor, which has none"),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.zeros(2, 3), 1.0, 0, torch.qint8),
        TypeError,
        r"got a quantized one \(torch.qint8\)",
    ),
    "functional": (lambda: torch._to_functional_tensor(torch.zeros(2, 3)), TypeError, "got a functional tensor"),
    "gone": (_resized_away, ValueError, "reaches to byte 24 of 0; its storage was resized"),
}

REFUSED_TO_WRITE = {
    "leaf": (lambda: torch.zeros(2, 3, requires_grad=True), "must not require grad to be written to"),
    "view of a leaf": (lambda: torch.zeros(4, 3, requires_grad=True)[:2], "must not require grad to be written to"),
    "graph": (lambda: torch.zeros(2, 3, requires_grad=True) * 2, "must not require grad to be written to"),
    "expanded": (lambda: torch.zeros(1, 3).expand(2, 3), "got stride 0 in dimension 0 of size 2; copy it with .clone"),
    "inference": (lambda: _inference(), "Inplace update to inference tensor"),
}


def _inference():
    with torch.inference_mode():
        return torch.zeros(2, 3)


ACCEPTED = {
    "subclass": lambda: torch.zeros(2, 3).as_subclass(Subclass),
    "transposed": lambda: torch.zeros(3, 2).t(),
    "part": lambda: torch.zeros(6, 7)[1:3, 2:7:2],
    "empty": lambda: torch.zeros(0, 3),
    "no columns": lambda: torch.zeros(2, 0),
    "one row": lambda: torch.zeros(3).expand(1, 3),
    "parameter, detached": lambda: torch.nn.Parameter(torch.zeros(2, 3)).detach(),
}

quiet = pytest.mark.filterwarnings(
    "ignore:Sparse CSR tensor support", "ignore:The PyTorch API of nested", "ignore:.*quantized tensor creation"
)


@quiet
class TestAccessorChecks:
    @pytest.mark.parametrize(("make", "error", "message"), REFUSED.values(), ids=REFUSED)
    @pytest.mark.parametrize("kind", ["accessor_of", "const_accessor_of"])
    def test_refused(self, handwritten, kind, make, error, message):
        with pytest.raises(error, match=message):
            getattr(handwritten, kind)(make())

    @pytest.mark.parametrize(("make", "message"), REFUSED_TO_WRITE.values(), ids=REFUSED_TO_WRITE)
    def test_refused_to_write_but_not_to_read(self, handwritten, make, message):
        x = make()
        with pytest.raises(RuntimeError, match=message):
            handwritten.accessor_of(x)
        assert handwritten.const_accessor_of(x)[0] == x.shape

    @pytest.mark.parametrize("make", ACCEPTED.values(), ids=ACCEPTED)
    @pytest.mark.parametrize("kind", ["accessor_of", "const_accessor_of"])
    def test_accepted(self, handwritten, kind, make):
        x = make()
        assert getattr(handwritten, kind)(x) == (x.shape, (x.stride(0), x.stride(-1)), x.data_ptr())

    @pytest.mark.parametrize("transform", ["vmap", "grad"])
    def test_inside_a_transform(self, handwritten, transform):
        def f(x):
            handwritten.const_accessor_of(x)
            return x.sum()

        x = torch.zeros(2, 2, 3) if transform == "vmap" else torch.zeros(2, 3)
        with pytest.raises(TypeError, match=r"got one that a torch\.func transform"):
            getattr(torch.func, transform)(f)(x)

    def test_without_a_name(self, handwritten):
        with pytest.raises(ValueError, match="argument 'tensor' must have 1 dimension, got 2"):
            handwritten.unnamed_accessor(torch.zeros(2, 3))

    def test_writing_counts_once(self, handwritten):
        x = torch.zeros(2, 3)
        handwritten.const_accessor_of(x)
        assert x._version == 0
        handwritten.scale2(x, 2.0)
        assert x._version == 1

    def test_autograd_notices_a_write(self, handwritten):
        w = torch.randn(2, 3, requires_grad=True)
        x = torch.randn(2, 3)
        y = (w * x).sum()
        handwritten.scale2(x, 2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()

    def test_a_dual_tensor_cannot_be_written_to(self, handwritten):
        """The write would leave the tangent of the old value."""
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(3), torch.full((3,), 2.0))
            with pytest.raises(RuntimeError, match="must not be a dual tensor"):
                handwritten.scale1(dual, 2.0)

    def test_a_leaf_without_grad_mode(self, handwritten):
        w = torch.ones(2, 3, requires_grad=True)
        with torch.no_grad():
            handwritten.scale2(w, 2.0)
        assert torch.equal(w.detach(), torch.full((2, 3), 2.0))

    def test_a_lazy_copy_is_copied_for_writing_alone(self, handwritten):
        x = torch.ones(2, 3)
        y = torch._lazy_clone(x)
        handwritten.const_accessor_of(y)
        assert torch._C._is_cow_tensor(y)
        handwritten.scale2(y, 2.0)
        assert torch.equal(x, torch.ones(2, 3))
        assert torch.equal(y, 2 * x)

    @pytest.mark.parametrize("dim", [2, -3, 2**40])
    def test_dimensions_that_are_none(self, handwritten, dim):
        with pytest.raises(IndexError, match=rf"dimension out of range \(expected to be in range of \[-2, 1\].*{dim}"):
            handwritten.accessor_size(torch.zeros(2, 3), dim)


class TestAccessorElements:
    @pytest.mark.parametrize(
        "dtype",
        [
            *("float32", "float64", "complex64", "complex128", "bool"),
            *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        ],
    )
    def test_element_types(self, handwritten, dtype):
        x = torch.tensor([[1, 0, 2], [3, 1, 1]]).to(getattr(torch, dtype))
        assert handwritten.total(x, dtype) == (True if dtype == "bool" else 8)
        other = "float64" if dtype != "float64" else "float32"
        with pytest.raises(TypeError, match=f"must have dtype torch.{dtype}, got torch.{other}"):
            handwritten.total(torch.zeros(2, 3, dtype=getattr(torch, other)), dtype)

    @settings(deadline=None, max_examples=100)
    @given(shape=st.lists(st.integers(0, 4), min_size=1, max_size=4), data=st.data())
    def test_views(self, handwritten, shape, data):
        """Reads and writes exactly the elements of a view, whatever its strides."""
        base = torch.arange(1.0, 1 + torch.Size(shape).numel() * 3 ** len(shape)).reshape([3 * n for n in shape])
        order = data.draw(st.permutations(range(len(shape))))
        steps = [data.draw(st.integers(1, 3)) for _ in shape]
        expected = base.clone()
        pick = tuple(slice(data.draw(st.integers(0, 2)), None, step) for step in steps)
        expected[pick] *= 3
        getattr(handwritten, f"scale{len(shape)}")(base[pick].permute(order), 3.0)
        assert torch.equal(base, expected)

    def test_keeps_the_memory(self, handwritten):
        assert handwritten.outlives(torch.tensor([1.0, 2.0])) == ([-1, -2], [2, 4], [3, 6])

    def test_rows_keep_their_strides(self, handwritten):
        x, y = torch.arange(6.0).view(2, 3), torch.arange(6.0).view(3, 2).t()
        assert handwritten.rows_of_temporaries(x, y) == (3, 4, 1, 3)

    def test_axpy(self, handwritten):
        x, y, z = torch.randn(7, 9).t(), torch.randn(9, 7), torch.empty(9, 7)
        z.copy_(y)
        handwritten.axpy(x, y, 0.5)
        handwritten.axpy_cxx(x, z, 0.5)
        assert torch.equal(y, z)


class TestBounds:
    def test_within(self, bounds):
        x = torch.randn(2, 3, 4, dtype=torch.float64)
        assert bounds.read(x, 1, 2, 3) == x[1, 2, 3].item()

    @pytest.mark.parametrize(
        ("index", "message"),
        [
            ((2, 0, 0), "index 2 is out of bounds for dimension 0 with size 2"),
            ((0, -1, 0), "index -1 is out of bounds for dimension 1 with size 3"),
            ((0, 0, 4), "index 4 is out of bounds for dimension 2 with size 4"),
            ((0, 0, -(2**63)), "index -9223372036854775808 is out of bounds for dimension 2"),
        ],
    )
    def test_reading_outside(self, bounds, index, message):
        with pytest.raises(IndexError, match=message):
            bounds.read(torch.zeros(2, 3, 4, dtype=torch.float64), *index)

    def test_writing_outside(self, bounds):
        x = torch.zeros(2, 3, dtype=torch.float64)
        with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 1 with size 3"):
            bounds.write(x, 1, 3, 1.0)
        assert not x.any()
        bounds.write(x, 1, 2, 1.0)
        assert x[1, 2] == 1

    @pytest.mark.parametrize("index", [-1, 0, 1])
    def test_never_assigned(self, bounds, index):
        with pytest.raises(IndexError, match="dimension 0 with size 0"):
            bounds.unassigned(index)


MISUSES = {
    "int": ("indices(i)", "takes no C int"),
    "True": ("indices(True)", "takes no C int"),
    "True among others": ("indices(at.Slice(), True)", "takes no C int"),
    "float": ("indices(2.5)", "an index must be an integer"),
    "write to a constant": ("constant[0] = 1", "Can't set non-reference result"),
}


@pytest.mark.usefixtures("jit_cache")
@pytest.mark.unchecked(by="leaks", reason="Cython keeps what it has read")
@pytest.mark.extended
class TestMisuseDoesNotCompile:
    @pytest.mark.parametrize(("statement", "message"), MISUSES.values(), ids=MISUSES)
    def test_misuse(self, monkeypatch, statement, message):
        monkeypatch.setenv("LD_PRELOAD", "")  # the compiler does not work with a sanitizer preloaded
        with pytest.raises(BuildError) as raised:
            interop.load_inline(
                "cimport torch\ncimport ATen as at\nfrom interop cimport const_accessor1, indices\n\n"
                "def f(torch.Tensor x not None, int i):\n"
                "    cdef at.Tensor t = x.cdata\n"
                "    cdef const_accessor1[float] constant = const_accessor1[float](t)\n"
                f"    {statement}\n    return t.dim(), constant.size(0)\n"
            )
        assert re.search(message, raised.value.output), raised.value.output


# Settings.


@pytest.fixture
def restored():
    """Restores torch's settings."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_float32_matmul_precision(),
        torch.get_default_dtype(),
        (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        torch.get_rng_state(),
    )
    yield
    torch.use_deterministic_algorithms(before[0], warn_only=before[1])
    torch.set_float32_matmul_precision(before[2])
    torch.set_default_dtype(before[3])
    torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = before[4]
    torch.set_rng_state(before[5])
    torch.set_flush_denormal(False)


@pytest.mark.usefixtures("restored")
class TestSettings:
    @pytest.mark.parametrize(("mode", "warn_only"), [(True, False), (True, True), (False, False)])
    def test_deterministic(self, handwritten, mode, warn_only):
        handwritten.use_deterministic(mode, warn_only)
        assert torch.are_deterministic_algorithms_enabled() is mode
        assert torch.is_deterministic_algorithms_warn_only_enabled() is warn_only
        torch.use_deterministic_algorithms(not mode, warn_only=not warn_only)
        assert handwritten.settings()["deterministic"] is (not mode)
        assert handwritten.settings()["warn only"] is (not warn_only)

    def test_alert(self, handwritten):
        torch.use_deterministic_algorithms(False)
        handwritten.alert()
        torch.use_deterministic_algorithms(True)
        with pytest.raises(RuntimeError, match="handwritten does not have a deterministic implementation"):
            handwritten.alert()
        torch.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="handwritten does not have a deterministic implementation"):
            handwritten.alert()

    @pytest.mark.parametrize("word", ["highest", "high", "medium"])
    def test_precision(self, handwritten, word):
        handwritten.set_precision(word)
        assert torch.get_float32_matmul_precision() == word == handwritten.settings()["precision"]

    def test_precision_that_is_none(self, handwritten):
        with pytest.raises(ValueError, match="must be 'highest', 'high' or 'medium', got 'low'"):
            handwritten.set_precision("low")

    @pytest.mark.parametrize("flags", [(True, True, False), (False, False, True), (True, False, False)])
    def test_cudnn(self, handwritten, flags):
        handwritten.set_cudnn(*flags)
        cudnn = torch.backends.cudnn
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == flags
        facts = handwritten.settings()
        assert (facts["cudnn enabled"], facts["cudnn benchmark"], facts["cudnn deterministic"]) == flags

    def test_default_dtype(self, handwritten):
        assert handwritten.set_default_dtype("double").dtype is torch.float64 is torch.get_default_dtype()
        assert handwritten.set_default_dtype("float").dtype is torch.float32 is torch.get_default_dtype()
        with pytest.raises(TypeError, match="must be a floating-point type, got Long"):
            handwritten.set_default_dtype("long")

    def test_modes(self, handwritten):
        facts = handwritten.settings()
        assert facts["grad"] is True
        assert facts["inference"] is False
        with torch.inference_mode():
            facts = handwritten.settings()
        assert facts["grad"] is False
        assert facts["inference"] is True

    def test_flush_denormal(self, handwritten):
        if not handwritten.flush_denormal(True):
            pytest.skip("this CPU cannot flush denormals")
        assert torch.tensor([1e-310], dtype=torch.float64).mul(1)[0] == 0
        assert handwritten.flush_denormal(False)
        assert torch.tensor([1e-310], dtype=torch.float64).mul(1)[0] != 0

    def test_what_there_is(self, handwritten):
        has = handwritten.has()
        assert has["gpus"] == (torch.cuda.device_count() if torch.version.cuda or torch.version.hip else 0)
        assert has["cuda"] == (torch.cuda.is_available() and torch.version.hip is None)
        assert has["mkl"] == torch.backends.mkl.is_available()
        assert has["mkldnn"] == torch.backends.mkldnn.is_available()
        assert has["openmp"] == torch.backends.openmp.is_available()
        assert has["lapack"] == torch._C.has_lapack
        assert has["mps"] == torch.backends.mps.is_built()

    @settings(deadline=None, max_examples=30)
    @given(st.integers(0, 2**64 - 1))
    def test_manual_seed(self, handwritten, seed):
        handwritten.manual_seed(seed)
        got = torch.randn(5), torch.rand(3), torch.randperm(7)
        assert torch.initial_seed() == seed
        torch.manual_seed(seed)
        for one, expected in zip(got, (torch.randn(5), torch.rand(3), torch.randperm(7)), strict=True):
            assert torch.equal(one, expected)


# Generators and storages.

UNDEFINED_GENERATOR = [
    *("current_seed", "set_current_seed", "seed", "clone", "device", "get_state", "set_state"),
    *("lock", "unlock", "random", "random64"),
]


class TestGenerator:
    def test_undefined(self, handwritten):
        assert handwritten.undefined_generator("defined") is False

    @pytest.mark.parametrize("what", UNDEFINED_GENERATOR)
    def test_undefined_raises(self, handwritten, what):
        with pytest.raises(ValueError, match="the generator is undefined, so it has no state"):
            handwritten.undefined_generator(what)

    @settings(deadline=None, max_examples=30)
    @given(seed=st.integers(0, 2**64 - 1), shape=st.lists(st.integers(0, 5), max_size=3))
    def test_numbers_are_those_of_torch(self, handwritten, seed, shape):
        g = torch.Generator().manual_seed(seed)
        normal, uniform, coins, again, current = handwritten.drawn(seed, shape)
        assert torch.equal(normal, torch.randn(shape, generator=g))
        expected = torch.rand(shape, generator=g)
        assert torch.equal(uniform, expected)
        assert torch.equal(coins, torch.bernoulli(expected, generator=g))
        assert torch.equal(again, normal)
        assert current == seed

    def test_draws_of_a_kernel(self, handwritten):
        """The draws are those of torch.randint: one of 32 bits per element, modulo the range."""
        g = torch.Generator().manual_seed(11)
        drawn = handwritten.kernel_draws(11, 6)
        assert [value % 1000 for value in drawn] == torch.randint(0, 1000, (6,), generator=g).tolist()

    @pytest.mark.usefixtures("restored")
    def test_default(self, handwritten):
        torch.manual_seed(77)
        assert handwritten.default_generator_facts() == (77, True, False, True, "cpu", True)
        handwritten.seeded_default(5)
        x = torch.randn(3)
        torch.manual_seed(5)
        assert torch.equal(x, torch.randn(3))

    def test_seeds_itself(self, handwritten):
        first, second = handwritten.reseeded(), handwritten.reseeded()
        assert first[0] == first[1]
        assert first[0] != second[0]

    @pytest.mark.parametrize("state", [None, torch.zeros(3), torch.zeros(3, dtype=torch.uint8)])
    def test_states_that_are_none(self, handwritten, state):
        with pytest.raises((TypeError, RuntimeError), match=r"must be a tensor|must be a torch\.ByteTensor|size"):
            handwritten.set_wrong_state(state)


class TestStorage:
    def test_undefined(self, handwritten):
        assert handwritten.undefined_storage("bool") is False
        assert handwritten.undefined_storage("use_count") == 0

    @pytest.mark.parametrize("what", ["nbytes", "data", "mutable_data", "resizable", "device", "alias"])
    def test_undefined_raises(self, handwritten, what):
        with pytest.raises(ValueError, match="the storage is undefined"):
            handwritten.undefined_storage(what)

    def test_facts(self, handwritten):
        x = torch.arange(6.0)
        facts = handwritten.storage_facts(x, x[2:])
        storage = x.untyped_storage()
        assert facts["defined"]
        assert facts["nbytes"] == facts["at once"] == storage.nbytes() == 24
        assert facts["data"] == facts["mutable"] == storage.data_ptr()
        assert facts["resizable"] is storage.resizable()
        assert facts["device"] == "cpu"
        assert facts["alias"]
        assert not handwritten.storage_facts(x, torch.zeros(6))["alias"]
        assert not handwritten.storage_facts(torch.from_numpy(np.zeros(2)), x)["resizable"]

    def test_sparse_has_none(self, handwritten):
        with pytest.raises(NotImplementedError, match="Cannot access storage"):
            handwritten.storage_facts(torch.eye(2).to_sparse(), torch.zeros(1))


# Scalars, and numbers combined with tensors.

BOOL, LONG, UNSIGNED, DOUBLE, COMPLEX = 11, 4, 29, 7, 10
numbers = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
)


class TestScalar:
    @settings(deadline=None)
    @given(numbers)
    def test_python_numbers(self, handwritten, value):
        kind, dtype, back = handwritten.scalar(value)
        assert kind == type(value).__name__
        assert back == value
        assert type(back) is type(value)
        wide = isinstance(value, int) and value >= 2**63
        assert dtype == {"bool": BOOL, "int": UNSIGNED if wide else LONG, "float": DOUBLE, "complex": COMPLEX}[kind]

    @pytest.mark.parametrize(("value", "kind"), [(np.int64(3), "int"), (np.uint8(3), "int"), (np.float64(3), "float")])
    def test_numpy_numbers(self, handwritten, value, kind):
        assert handwritten.scalar(value)[::2] == (kind, 3)

    def test_c_numbers(self, handwritten):
        assert handwritten.scalars() == [
            ("bool", BOOL, True),
            ("bool", BOOL, True),
            ("bool", BOOL, False),
            ("int", LONG, -3),
            ("int", LONG, -5),
            ("int", UNSIGNED, 2**64 - 1),
            ("float", DOUBLE, 0.5),
            ("complex", COMPLEX, 1 + 2j),
            ("int", LONG, 1),
            ("float", DOUBLE, 2.5),
        ]

    @pytest.mark.parametrize("value", [2**64, 10**30, -(2**63) - 1, -(10**30)])
    def test_too_large(self, handwritten, value):
        with pytest.raises(OverflowError):
            handwritten.scalar(value)

    @pytest.mark.parametrize("value", [None, "1", [1], torch.tensor(1), np.array(1), np.array([1])], ids=repr)
    def test_what_is_no_number(self, handwritten, value):
        with pytest.raises(TypeError, match="argument 'value' must be bool, int, float or complex, got"):
            handwritten.scalar(value)

    @settings(deadline=None)
    @given(numbers, numbers)
    def test_equality(self, handwritten, a, b):
        """As in Python, except that truth values equal no numbers, and integers compared with floats are rounded."""
        assert handwritten.scalars_equal(a, a)
        alike = isinstance(a, bool) == isinstance(b, bool)
        if all(max(abs(n.real), abs(n.imag)) < 2**53 for n in (a, b)):
            assert handwritten.scalars_equal(a, b) == (alike and a == b)

    def test_conversions(self, handwritten):
        assert handwritten.scalar_as(3, "double") == 3.0
        assert handwritten.scalar_as(2.75, "long") == 2
        assert handwritten.scalar_as(True, "long") == 1
        assert handwritten.scalar_as(0.0, "bool") is False
        assert handwritten.scalar_as(2, "complex") == 2 + 0j
        assert handwritten.scalar_as(1 + 2j, "conj") == 1 - 2j
        assert handwritten.scalar_as(4, "negative") == ("int", LONG, -4)

    @pytest.mark.parametrize(("value", "what"), [(2**40, "int"), (1e30, "long"), (1j, "double"), (2**64 - 1, "long")])
    def test_conversions_that_lose_the_number(self, handwritten, value, what):
        with pytest.raises((RuntimeError, OverflowError), match=r"cannot be converted to type .* without overflow"):
            handwritten.scalar_as(value, what)

    def test_a_truth_value_keeps_the_type(self, handwritten):
        mask = torch.tensor([True, False])
        assert handwritten.times_truth(mask).dtype is torch.bool


class TestNumberOnTheLeft:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.uint8, torch.complex64])
    def test_as_in_python(self, handwritten, dtype):
        x = torch.tensor([[1, 2, 3], [4, 5, 7]]).to(dtype)
        got = handwritten.number_on_the_left(x, 1.5, 2)
        expected = [1.5 + x, 1.5 - x, 1.5 * x, 1.5 / x, 2 + x, 2 - x, 1 / x, 3 * x - 2.0 * x]
        for one, other in zip(got, expected, strict=True):
            assert one.dtype is other.dtype
            assert torch.equal(one, other)

    def test_gradients(self, handwritten):
        x = torch.tensor([random.uniform(1, 2)], requires_grad=True)
        handwritten.number_on_the_left(x, 1.5, 2)[3].backward()
        assert torch.allclose(x.grad, -1.5 / x.detach() ** 2)
