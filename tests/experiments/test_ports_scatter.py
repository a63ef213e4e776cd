"""The port of torch_scatter: the results of plain torch for every dtype, layout and kind of index, or a clear error."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

import experiments
from experiments.harness import building
from interop.testing import check_dynamic_shapes

pytestmark = pytest.mark.slow

REDUCTIONS = ("sum", "mean", "min", "max")
INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
LAYOUTS = {
    "contiguous": lambda t: t.contiguous(),
    "columns first": lambda t: t.movedim(-1, 0).contiguous().movedim(0, -1),
    "every second": lambda t: torch.stack((t, torch.zeros_like(t)), -1).flatten(-2)[..., ::2],
}


@pytest.fixture(scope="session")
def scatter():
    """The module with the inputs and references, after its operators are registered."""
    building.build("ports")
    building.native("ports", "scatter_cython")
    experiments.load("ports")
    return experiments.load("ports", "scatter.port")


@pytest.fixture(scope="session")
def ops(scatter):
    """The operators."""
    return torch.ops.ports_scatter


@pytest.fixture(params=[1, 3])
def threads(request):
    """The number of threads that torch uses."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def grouped(scatter, reduce, src, indices, dim, size):
    """Reduces the groups of rows of each batch item with plain torch. `indices` has one index, or one for each item."""
    batch = src.flatten(0, dim - 1) if dim else src[None]
    indices = indices.expand(batch.shape[0], -1)
    results = [scatter.reduced(reduce, x, i, 0, size) for x, i in zip(batch, indices, strict=True)]
    parts = list(zip(*results, strict=True)) if reduce in ("min", "max") else [results]
    shape = (*src.shape[:dim], size, *src.shape[dim + 1 :])
    whole = [torch.stack(list(part)).reshape(shape) if part else src.new_zeros(shape) for part in parts]
    return tuple(whole) if reduce in ("min", "max") else whole[0]


def pointers_of(index, size):
    """The pointers of a sorted index, for each batch item."""
    counts = torch.stack([torch.bincount(i, minlength=size) for i in index.unsqueeze(0).flatten(0, -2)])
    pointers = torch.cat([torch.zeros(len(counts), 1, dtype=torch.int64), counts.cumsum(1)], 1)
    return pointers.reshape(*index.shape[:-1], size + 1)


class TestAgreement:
    """The port agrees with plain torch, also for the inputs that the experiment times."""

    def test_results_and_gradients(self, scatter):
        measure = experiments.load("ports", "measure")
        for operation in scatter.PORT.operations:
            for dtype in operation.dtypes:
                measure.compare(scatter.PORT, operation, "reference", operation.sizes[0], dtype)

    @pytest.mark.parametrize("dtype", [*INTEGRAL, *FLOATING])
    @pytest.mark.parametrize("columns", [1, 5, 16, 37])
    @pytest.mark.usefixtures("threads")
    def test_every_dtype(self, scatter, ops, dtype, columns):
        src = torch.randint(0, 3, (40, columns)).to(dtype)
        index = torch.randint(0, 9, (40,))
        ordered = index.sort().values
        for reduce in (*REDUCTIONS, "mul"):
            found = getattr(ops, f"scatter_{reduce}")(src, index, 0, 10)
            expected = scatter.reduced(reduce, src.double(), index, 0, 10)
            if reduce == "mul":
                expected = torch.where(expected > torch.iinfo(torch.int8).max, found.double(), expected)
            check(found, expected, dtype)
            if reduce != "mul":
                expected = scatter.reduced(reduce, src.double(), ordered, 0, 10)
                check(getattr(ops, f"segment_{reduce}_coo")(src, ordered, 10), expected, dtype)
                check(getattr(ops, f"segment_{reduce}_csr")(src, pointers_of(ordered, 10)), expected, dtype)

    @pytest.mark.parametrize("dtype", FLOATING)
    @pytest.mark.parametrize("each", [False, True], ids=["an index", "an index for each column"])
    @pytest.mark.usefixtures("threads")
    def test_large_groups(self, ops, dtype, each):
        """Sums are rounded to the dtype at the end only. A sum of bfloat16 that is rounded each time stops at 256."""
        generator = torch.Generator().manual_seed(0)
        src = torch.rand(9000, 5, generator=generator).to(dtype)
        index = torch.randint(0, 3, (9000,), generator=generator)
        given = index[:, None].expand(-1, 5).contiguous() if each else index
        counts = torch.bincount(index).double()[:, None]
        sums = torch.zeros(3, 5, dtype=torch.float64).index_add_(0, index, src.double())
        least = {"rtol": 3 * torch.finfo(dtype).eps if dtype.itemsize < 4 else 1e-5, "atol": 0}
        ordered = index.sort(stable=True)
        for found, expected in (
            (ops.scatter_sum(src, given, 0, 3), sums),
            (ops.scatter_mean(src, given, 0, 3), sums / counts),
            (ops.segment_sum_coo(src[ordered.indices], ordered.values, 3), sums),
            (ops.segment_mean_coo(src[ordered.indices], ordered.values, 3), sums / counts),
        ):
            torch.testing.assert_close(found.double(), expected, **least)
        values = torch.ones(3, 5, dtype=dtype, requires_grad=True)
        ops.gather_coo(values, ordered.values).sum().backward()
        torch.testing.assert_close(values.grad.double(), counts.expand(3, 5), **least)

    def test_means_of_negative_integers(self, ops):
        """As in the original, means of segments round towards zero, and scattered means round down."""
        src, index = torch.tensor([-1, -2, 3, 4]), torch.tensor([0, 0, 1, 1])
        assert ops.segment_mean_coo(src, index).tolist() == [-1, 3]
        assert ops.segment_mean_csr(src, torch.tensor([0, 2, 4])).tolist() == [-1, 3]
        assert ops.scatter_mean(src, index).tolist() == [-2, 3]

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_any_sizes_and_layouts(self, scatter, ops, data):
        batch, rows, columns, size = (
            data.draw(st.integers(least, most), name)
            for name, least, most in (("batch", 1, 4), ("rows", 0, 30), ("columns", 1, 40), ("groups", 1, 9))
        )
        reduce = data.draw(st.sampled_from(REDUCTIONS), "reduce")
        layout = LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)), "layout")]
        generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**32 - 1), "seed"))
        src = torch.randint(-3, 4, (batch, rows, columns), generator=generator).double()
        shared = data.draw(st.booleans(), "one index for all")
        index = torch.randint(0, size, (1 if shared else batch, rows), generator=generator)
        ordered = index.sort(1).values
        expected = grouped(scatter, reduce, src, ordered, 1, size)
        check(getattr(ops, f"segment_{reduce}_coo")(layout(src), layout(ordered), size), expected)
        check(getattr(ops, f"segment_{reduce}_csr")(layout(src), layout(pointers_of(ordered, size))), expected)
        scattered = getattr(ops, f"scatter_{reduce}")
        expected = grouped(scatter, reduce, src, index, 1, size)
        each = index.unsqueeze(-1).expand(-1, -1, columns)
        check(scattered(layout(src), layout(each), 1, size), expected)
        check(scattered(layout(src), index[..., None], -2, size), expected)
        if shared:
            check(scattered(layout(src), index[0], 1, size), expected)
        values = torch.randn(batch, size, columns)
        expected = values.take_along_dim(ordered.unsqueeze(-1), 1)
        assert torch.equal(ops.gather_coo(layout(values), layout(ordered)), expected)
        assert torch.equal(ops.gather_csr(layout(values), layout(pointers_of(ordered, size)), rows), expected)

    def test_an_index_for_each_column(self, scatter, ops):
        src, index = torch.randn(30, 6, dtype=torch.double), torch.randint(0, 5, (30, 6))
        for reduce in (*REDUCTIONS, "mul"):
            columns = [scatter.reduced(reduce, src[:, k], index[:, k], 0, 5) for k in range(6)]
            if reduce in ("min", "max"):
                expected = tuple(torch.stack(part, 1) for part in zip(*columns, strict=True))
            else:
                expected = torch.stack(columns, 1)
            check(getattr(ops, f"scatter_{reduce}")(src, index, 0, 5), expected)

    def test_gather_is_indexing(self, ops):
        src, index = torch.randn(4, 7, 3), torch.randint(0, 7, (20,)).sort().values
        pointers = pointers_of(index, 7)
        assert torch.equal(ops.gather_coo(src, index.expand(1, -1)), src[:, index])
        assert torch.equal(ops.gather_csr(src, pointers.expand(1, -1)), src[:, index])
        assert torch.equal(ops.gather_csr(src, pointers.expand(4, -1).contiguous(), 20), src[:, index])

    def test_rows_in_no_group_get_nothing(self, ops):
        pointers = torch.tensor([2, 4, 5])
        assert ops.gather_csr(torch.tensor([1.0, 2.0]), pointers, 7).tolist() == [0, 0, 1, 1, 2, 0, 0]
        assert ops.segment_sum_csr(torch.ones(7), pointers).tolist() == [2, 1]

    def test_the_number_of_groups_is_that_of_the_largest_index(self, ops):
        assert ops.scatter_sum(torch.ones(4, 3), torch.tensor([0, 5, 2, 0]), 0).shape == (6, 3)
        assert ops.segment_sum_coo(torch.ones(2, 3), torch.tensor([[0, 5, 5], [0, 0, 1]])).shape == (2, 6)


def check(found, expected, dtype=None):
    """Equal, including the numbers of rows."""
    if isinstance(expected, tuple):
        assert torch.equal(found[1], expected[1])
        found, expected = found[0], expected[0]
    if dtype is not None:
        assert found.dtype == dtype
        expected = expected.trunc() if dtype in INTEGRAL else expected
    torch.testing.assert_close(
        found.double(), expected, rtol=1e-2 if dtype in (torch.bfloat16, torch.float16) else 1e-6, atol=0
    )


class TestUnusualValues:
    @pytest.mark.parametrize("dtype", FLOATING)
    def test_infinities(self, ops, dtype):
        src = torch.tensor([torch.inf, torch.inf, 1.0, -torch.inf, -torch.inf, 2.0], dtype=dtype)
        index = torch.tensor([0, 0, 1, 1, 2, 3])
        for name, *more in (
            ("segment_{}_coo", index),
            ("segment_{}_csr", pointers_of(index, 4)),
            ("scatter_{}", index),
        ):
            least, places = getattr(ops, name.format("min"))(src, *more)
            assert least.tolist() == [torch.inf, -torch.inf, -torch.inf, 2.0]
            assert places.tolist() == [0, 3, 4, 5]
            most, places = getattr(ops, name.format("max"))(src, *more)
            assert most.tolist() == [torch.inf, 1.0, -torch.inf, 2.0]
            assert places.tolist() == [0, 2, 4, 5]

    def test_the_limits_of_integers(self, ops):
        for dtype in INTEGRAL:
            for name, value in (("min", torch.iinfo(dtype).max), ("max", torch.iinfo(dtype).min)):
                src = torch.full((3,), value, dtype=dtype)
                for result in (
                    getattr(ops, f"scatter_{name}")(src, torch.tensor([0, 0, 2])),
                    getattr(ops, f"segment_{name}_coo")(src, torch.tensor([0, 0, 2])),
                    getattr(ops, f"segment_{name}_csr")(src, torch.tensor([0, 2, 2, 3])),
                ):
                    assert result[0].tolist() == [value, 0, value]
                    assert result[1].tolist() == [0, 3, 2]

    def test_nan_is_passed_over(self, ops):
        src, index = torch.tensor([torch.nan, 1.0, torch.nan, 2.0]), torch.tensor([0, 0, 1, 1])
        for name in ("min", "max"):
            for result in (
                getattr(ops, f"scatter_{name}")(src, index),
                getattr(ops, f"segment_{name}_coo")(src, index),
                getattr(ops, f"segment_{name}_csr")(src, torch.tensor([0, 2, 4])),
            ):
                assert [part.tolist() for part in result] == [[1, 2], [1, 3]]

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (5, 0)])
    def test_empty(self, ops, shape):
        src, index = torch.ones(shape), torch.zeros(shape[0], dtype=torch.int64)
        pointers = torch.tensor([0, shape[0], shape[0]])
        expected = torch.zeros(2, *shape[1:])
        for reduce in REDUCTIONS:
            for found in (
                getattr(ops, f"segment_{reduce}_csr")(src, pointers),
                getattr(ops, f"segment_{reduce}_coo")(src, index, 2),
                getattr(ops, f"scatter_{reduce}")(src, index, 0, 2),
            ):
                result = found[0] if reduce in ("min", "max") else found
                assert result.shape == expected.shape
                assert not result.any()
                if reduce in ("min", "max"):
                    assert (found[1] == shape[0]).all()
        assert ops.scatter_sum(src, index, 0).shape == (1 if shape[0] else 0, *shape[1:])
        assert ops.gather_coo(expected, index).shape == shape
        assert ops.gather_csr(expected, pointers).shape[1:] == shape[1:]


class TestErrors:
    @pytest.mark.parametrize("index", [[0, 1, 4], [-1, 0, 1], [0, 2**40, 2], [2, 1, 0], [0, 2, 1]])
    def test_an_index_that_is_wrong(self, ops, index):
        src, index = torch.ones(3, 20), torch.tensor(index)
        for reduce in REDUCTIONS:
            with pytest.raises(IndexError, match="the index must be from 0 to 3 and, in csr and coo, in ascending"):
                getattr(ops, f"segment_{reduce}_coo")(src, index, 4)
        with pytest.raises(IndexError, match="the index must be from 0 to 3"):
            ops.gather_coo(torch.ones(4, 20), index)

    @pytest.mark.parametrize("index", [[0, 1, 4], [-1, 0, 1], [0, 2**40, 2]])
    def test_an_index_to_scatter_that_is_wrong(self, ops, index):
        index = torch.tensor(index)
        for reduce in (*REDUCTIONS, "mul"):
            for each in (index, index[:, None].expand(3, 20)):
                with pytest.raises(IndexError, match=r"the index must be from 0 to 3 .*; got (4|-1|1099511627776) as"):
                    getattr(ops, f"scatter_{reduce}")(torch.ones(3, 20), each, 0, 4)

    @pytest.mark.parametrize("pointers", [[0, 4], [-1, 3], [2, 1, 3], [0, 2**40, 3], [4, 4]])
    def test_pointers_that_are_wrong(self, ops, pointers):
        for reduce in REDUCTIONS:
            with pytest.raises(IndexError, match="the index must be from 0 to 3 and, in csr and coo, in ascending"):
                getattr(ops, f"segment_{reduce}_csr")(torch.ones(3, 20), torch.tensor(pointers))

    def test_what_does_not_fit(self, ops):
        src, index = torch.ones(3, 20), torch.tensor([0, 1, 1])
        with pytest.raises(TypeError, match="the index must be of int64, got Int"):
            ops.segment_sum_coo(src, index.int(), 2)
        with pytest.raises(ValueError, match="a number for each of 3 rows, got 2"):
            ops.segment_sum_coo(src, index[:2], 2)
        with pytest.raises(ValueError, match="a pointer more than there are groups, 2, got 2"):
            ops.gather_csr(torch.ones(2, 20), index[:2], 3)
        with pytest.raises(ValueError, match="indptr must have a pointer more"):
            ops.segment_sum_csr(src, index[:0])
        with pytest.raises(ValueError, match="from 1 to 2 dimensions"):
            ops.segment_sum_coo(src, index[None, :, None], 2)
        with pytest.raises(ValueError, match="dim_size must not be negative, got -1"):
            ops.scatter_sum(src, index, 0, -1)
        with pytest.raises(IndexError, match="dim must be from -2 to 1, got 2"):
            ops.scatter_sum(src, index, 2, 4)
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            ops.scatter_sum(src.bool(), index, 0, 4)
        with pytest.raises(ValueError, match="the size of the result must be given"):
            ops.segment_sum_coo(src.to("meta"), index)


def cases():
    """For each operator, a function that makes arguments from a number of rows, on which all sizes depend."""

    def index(n):
        return torch.arange(n) // 2

    def rows(n):
        return torch.randn(n, n + 1, dtype=torch.double, requires_grad=True)

    def pointers(n):
        return torch.arange(n + 1)

    def places(n):
        return torch.arange(n * (n + 1)).reshape(n, n + 1) % (2 * n)

    found = {}
    for reduce in REDUCTIONS:
        found[f"segment_{reduce}_csr"] = lambda n: (rows(n), pointers(n))
        found[f"segment_{reduce}_coo"] = lambda n: (rows(n), index(n), n)
    for reduce in (*REDUCTIONS, "mul"):
        found[f"scatter_{reduce}"] = lambda n: (rows(n), index(n), 0, n)
    return found | {
        "gather_csr": lambda n: (rows(n), pointers(n), n),
        "_share_csr": lambda n: (rows(n), pointers(n), n),
        "gather_coo": lambda n: (rows(n), index(n)),
        "_share_coo": lambda n: (rows(n), index(n)),
        "_take": lambda n: (rows(n), index(n), 0),
        "_pick": lambda n: (rows(n), places(n).clamp(max=n), 0),
        "_put_back": lambda n: (rows(n), torch.arange(n).unsqueeze(1).expand(n, n + 1).clone(), 0, n),
    }


CASES = cases()


class TestGradients:
    @pytest.mark.parametrize("name", CASES)
    def test_first_and_second(self, ops, name):
        arguments = CASES[name](4)

        def first(src):
            result = getattr(ops, name)(src, *arguments[1:])
            return result[0] if isinstance(result, tuple) else result

        assert gradcheck(first, arguments[:1])
        assert gradgradcheck(first, arguments[:1])

    @pytest.mark.parametrize("name", CASES)
    def test_operators_keep_what_they_promise(self, ops, name):
        checked = torch.library.opcheck(getattr(ops, name).default, CASES[name](4))
        assert set(checked.values()) == {"SUCCESS"}

    @pytest.mark.parametrize("name", CASES)
    def test_one_compilation_for_all_sizes(self, ops, name):
        check_dynamic_shapes(getattr(ops, name), CASES[name])

    def test_the_first_of_equal_ones_has_the_gradient(self, ops):
        src = torch.tensor([2.0, 2.0, 1.0, 1.0], requires_grad=True)
        for result, _ in (
            ops.scatter_max(src, torch.tensor([0, 0, 1, 1])),
            ops.segment_max_coo(src, torch.tensor([0, 0, 1, 1])),
            ops.segment_max_csr(src, torch.tensor([0, 2, 4])),
        ):
            (gradient,) = torch.autograd.grad(result.sum(), src)
            assert gradient.tolist() == [1, 0, 1, 0]

    def test_a_factor_of_zero_has_the_gradient_zero(self, ops):
        """As in the original."""
        src = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
        (gradient,) = torch.autograd.grad(ops.scatter_mul(src, torch.tensor([0, 0, 1])).sum(), src)
        assert gradient.tolist() == [0, 0, 1]
