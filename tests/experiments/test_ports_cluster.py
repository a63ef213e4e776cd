"""The port of torch_cluster finds the neighbours, samples and clusters that an exhaustive search and torch find."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.harness import building
from experiments.ports.cluster import port
from interop.testing import check_dynamic_shapes

pytestmark = pytest.mark.slow

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@pytest.fixture(scope="module")
def ops():
    """The compiled operators."""
    building.build("ports", ["cluster_cython"])
    building.native("ports", "cluster_cython")
    return torch.ops.ports_cluster


@pytest.fixture(params=[1, 2])
def threads(request):
    """The number of threads that torch uses."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def clouds(*sizes):
    """The offsets at which clouds of these sizes begin, and the end."""
    return torch.tensor([0, *sizes]).cumsum(0)


def cells(*shape, seed=0, dtype=torch.float32, most=9):
    """Points on a grid: many have the same distance, and every distance is exact in all dtypes."""
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def check_nearest(found, x, y, k, ptr_x=None, ptr_y=None):
    """Checks that the pairs are distinct, and sorted by distance, and that no other pairs are closer."""
    expected = port.reference_knn(x.double(), y.double(), ptr_x, ptr_y, k)
    assert found.dtype == torch.int64
    assert torch.equal(found[0], expected[0])
    assert found.unique(dim=1).shape == found.shape
    between = [(x[pairs[1]].double() - y[pairs[0]].double()).square().sum(1) for pairs in (found, expected)]
    assert torch.equal(*between) if not x.is_floating_point() else torch.allclose(*between, rtol=1e-5)
    if ptr_x is not None:
        numbers = torch.arange(len(ptr_x) - 1)
        of_x = numbers.repeat_interleave(ptr_x.diff())[found[1]]
        assert torch.equal(of_x, numbers.repeat_interleave(ptr_y.diff())[found[0] - ptr_y[0]])


def sorted_pairs(pairs):
    return sorted(map(tuple, pairs.t().tolist()))


class TestPort:
    @pytest.mark.parametrize("operation", port.PORT.operations, ids=lambda operation: operation.name)
    def test_results_are_those_of_plain_torch(self, ops, operation):
        for dtype in operation.dtypes:
            arguments = operation.inputs(operation.sizes[0], dtype)
            found, expected = operation.ours(*arguments), operation.reference(*arguments)
            assert len(found.flatten()) > 0
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


class TestNeighbours:
    @pytest.mark.parametrize("features", [1, 2, 3, 4, 7])
    @pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.uint8], ids=str)
    def test_of_many_at_one_distance(self, ops, threads, dtype, features):
        x, y = cells(400, features, dtype=dtype), cells(130, features, seed=1, dtype=dtype)
        check_nearest(ops.knn(x, y, None, None, 7), x, y, 7)
        found = ops.radius(x, y, None, None, 3.5, 400)
        # For integers the square of the radius is truncated to an integer, as in the original.
        bound = 3.5 if dtype.is_floating_point else 12**0.5
        expected = port.reference_radius(x.double(), y.double(), None, None, bound - 1e-6, 400)
        assert sorted_pairs(found) == sorted_pairs(expected)
        assert torch.equal(found[0], expected[0])
        assert torch.equal(ops.radius(x, y, None, None, 3.5, -1), found)

    @pytest.mark.parametrize("features", [1, 2, 3, 5])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_of_points_anywhere(self, ops, dtype, features):
        x, y = normal(700, features, dtype=dtype), normal(200, features, seed=1, dtype=dtype) * 1.5
        assert torch.equal(ops.knn(x, y, None, None, 9), port.reference_knn(x, y, None, None, 9))
        found = ops.radius(x, y, None, None, 0.7, 700)
        assert sorted_pairs(found) == sorted_pairs(port.reference_radius(x, y, None, None, 0.7, 700))

    def test_in_one_leaf_are_in_the_order_of_points(self, ops):
        x, y = cells(10, 2, most=3), cells(40, 2, seed=1, most=3)
        assert torch.equal(ops.knn(x, y, None, None, 4), port.reference_knn(x, y, None, None, 4))
        assert torch.equal(ops.radius(x, y, None, None, 1.5, 3), port.reference_radius(x, y, None, None, 1.5, 3))

    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_of_clouds(self, ops, threads, dtype):
        ptr_x, ptr_y = clouds(5, 0, 90, 1, 30), clouds(3, 70, 100, 0, 4)
        x, y = cells(126, 3, dtype=dtype), cells(177, 3, seed=1, dtype=dtype)
        check_nearest(ops.knn(x, y, ptr_x, ptr_y, 6), x, y, 6, ptr_x, ptr_y)
        found = ops.radius(x, y, ptr_x, ptr_y, 2.5, 50)
        expected = port.reference_radius(x.double(), y.double(), ptr_x, ptr_y, 2.5, 50)
        assert sorted_pairs(found) == sorted_pairs(expected)

    def test_of_clouds_that_are_not_all(self, ops):
        x, y = normal(60, 3), normal(50, 3, seed=1)
        ptr_x, ptr_y = torch.tensor([10, 30, 55]), torch.tensor([5, 6, 40])
        assert torch.equal(ops.knn(x, y, ptr_x, ptr_y, 4), port.reference_knn(x, y, ptr_x, ptr_y, 4))

    def test_beyond_the_limit_are_left_out(self, ops):
        x, y = normal(500, 3), normal(50, 3, seed=1)
        all_of_them = set(sorted_pairs(ops.radius(x, y, None, None, 1.0, 500)))
        few = sorted_pairs(ops.radius(x, y, None, None, 1.0, 5))
        assert set(few) < all_of_them
        counts = torch.tensor([query for query, _ in all_of_them]).bincount(minlength=50).clamp(max=5)
        assert torch.equal(torch.tensor([query for query, _ in few]).bincount(minlength=50), counts)

    @pytest.mark.parametrize("k", [0, 1, 20, 1000])
    def test_any_number(self, ops, k):
        x, y = normal(30, 3), normal(5, 3, seed=1)
        assert torch.equal(ops.knn(x, y, None, None, k), port.reference_knn(x, y, None, None, k))

    @pytest.mark.parametrize("shapes", [((0, 3), (4, 3)), ((4, 3), (0, 3)), ((4, 0), (4, 0)), ((0, 0), (0, 0))])
    def test_of_nothing(self, ops, shapes):
        x, y = (torch.zeros(shape) for shape in shapes)
        assert ops.knn(x, y, None, None, 3).shape == (2, 0)
        assert ops.radius(x, y, None, None, 1.0, 3).shape == (2, 0)

    @pytest.mark.parametrize("features", [1, 3, 5])
    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_of_points_that_are_not_finite(self, ops, dtype, features):
        x, y = cells(300, features, dtype=dtype), cells(40, features, seed=1, dtype=dtype)
        x[::7, 0], x[3::9, -1], x[5::11, 0] = torch.nan, torch.inf, -torch.inf
        y[3, 0], y[11, -1] = torch.nan, torch.inf
        check_nearest(ops.knn(x, y, None, None, 5), x, y, 5)
        found = ops.radius(x, y, None, None, torch.inf, 300)
        finite = [int(points.isfinite().all(1).sum()) for points in (x, y)]
        assert found.shape[1] == finite[0] * finite[1]
        assert ops.knn(x * torch.nan, y, None, None, 5).shape == (2, 0)

    def test_of_one_point_many_times(self, ops):
        x = torch.ones(3000, 3)
        assert ops.knn(x, x[:4], None, None, 10).shape == (2, 40)
        assert ops.radius(x, x[:4], None, None, 0.1, 5000).shape == (2, 12_000)

    def test_in_a_deep_tree(self, ops):
        x = (2.0 ** -torch.arange(500, dtype=torch.float64))[:, None]
        y = x[::50] * 1.25
        assert torch.equal(ops.knn(x, y, None, None, 1), port.reference_knn(x, y, None, None, 1))

    def test_of_strided_points(self, ops):
        x, y = normal(3, 200), normal(80, 6, seed=1)
        expected = ops.knn(x.t().contiguous(), y[:, ::2].contiguous(), None, None, 4)
        assert torch.equal(ops.knn(x.t(), y[:, ::2], None, None, 4), expected)

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 4), st.integers(1, 12), st.integers(0, 1000))
    def test_of_any_clouds(self, ops, rows, queries, features, k, seed):
        x, y = cells(rows, features, seed=seed, most=4), cells(queries, features, seed=seed + 1, most=4)
        cut_x, cut_y = rows // 3, queries // 2
        ptr_x, ptr_y = clouds(cut_x, rows - cut_x), clouds(cut_y, queries - cut_y)
        check_nearest(ops.knn(x, y, ptr_x, ptr_y, k), x, y, k, ptr_x, ptr_y)
        found = ops.radius(x, y, ptr_x, ptr_y, 1.5, 60)
        assert sorted_pairs(found) == sorted_pairs(port.reference_radius(x, y, ptr_x, ptr_y, 1.5, 60))

    @pytest.mark.parametrize(
        ("error", "match", "change"),
        [
            (ValueError, r"'x' must be a matrix of points, got sizes \[3\]", {"x": torch.zeros(3)}),
            (ValueError, r"'y' must be a matrix", {"y": torch.zeros(3, 3, 3)}),
            (TypeError, r"must have one dtype, got Float and Double", {"y": torch.zeros(3, 3).double()}),
            (ValueError, r"as many features, got 3 and 2", {"y": torch.zeros(3, 2)}),
            (ValueError, r"must both be given", {"ptr_y": None}),
            (ValueError, r"'ptr_x' must ascend .* at most 4, .* got 5 after 0", {"ptr_x": torch.tensor([0, 5])}),
            (ValueError, r"'ptr_y' must ascend .* got 1 after 2", {"ptr_y": torch.tensor([0, 2, 1])}),
            (ValueError, r"'ptr_y' must ascend .* got -1 after 0", {"ptr_y": torch.tensor([-1, 2])}),
            (ValueError, r"as many clouds, got 1 and 2", {"ptr_y": torch.tensor([0, 2, 4])}),
            (ValueError, r"'ptr_x' must have a number for each cloud", {"ptr_x": torch.zeros(0, dtype=torch.int64)}),
            (TypeError, r"'ptr_x' must have dtype torch.int64", {"ptr_x": torch.tensor([0, 4], dtype=torch.int32)}),
            (
                NotImplementedError,
                r"not implemented for 'Bool'",
                {"x": torch.ones(4, 3) > 0, "y": torch.ones(4, 3) > 0},
            ),
        ],
    )
    def test_of_wrong_arguments(self, ops, error, match, change):
        arguments = {"x": torch.zeros(4, 3), "y": torch.zeros(4, 3), "ptr_x": clouds(4), "ptr_y": clouds(4)} | change
        with pytest.raises(error, match=match):
            ops.knn(**arguments, k=2)
        with pytest.raises(error, match=match):
            ops.radius(**arguments, r=2.0, max_num_neighbors=3)

    def test_of_a_number_that_is_wrong(self, ops):
        x = torch.zeros(4, 3)
        with pytest.raises(ValueError, match="'k' must not be negative, got -1"):
            ops.knn(x, x, None, None, -1)
        with pytest.raises(ValueError, match="'cosine' must be False on the CPU"):
            ops.knn(x, x, None, None, 1, True)


class TestSamples:
    @pytest.mark.parametrize("features", [1, 2, 3, 6])
    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_are_the_farthest(self, ops, threads, dtype, features):
        src, ptr = cells(620, features, dtype=dtype, most=12), clouds(20, 0, 500, 99, 1)
        expected = port.reference_fps(src, ptr, torch.tensor(0.4))
        assert torch.equal(ops.fps(src, ptr, torch.tensor(0.4), False), expected)

    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_of_points_anywhere(self, ops, dtype):
        src, ptr = normal(2000, 3, dtype=dtype), clouds(2000)
        expected = port.reference_fps(src, ptr, torch.tensor(0.5))
        assert torch.equal(ops.fps(src, ptr, torch.tensor(0.5), False), expected)

    def test_of_integers(self, ops):
        src, ptr = cells(300, 3, dtype=torch.int32), clouds(300)
        expected = port.reference_fps(src.double(), ptr, torch.tensor(0.5))
        for dtype in (torch.int64, torch.int32, torch.uint8):
            assert torch.equal(ops.fps(src.to(dtype), ptr, torch.tensor(0.5), False), expected)

    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    @pytest.mark.parametrize("value", [torch.nan, torch.inf])
    def test_of_points_that_are_not_finite(self, ops, dtype, value):
        src, ptr = cells(300, 3, dtype=dtype), clouds(100, 200)
        src[140, 1] = value
        expected = port.reference_fps(src, ptr, torch.tensor(0.2))
        assert torch.equal(ops.fps(src, ptr, torch.tensor(0.2), False), expected)

    @pytest.mark.parametrize(
        "ratio", [torch.tensor(1.5), torch.tensor(0.0), torch.tensor(0.3, dtype=torch.float64),
                  torch.tensor([0.5, 0.1]), torch.tensor([0.3, 0.7], dtype=torch.float64), torch.tensor(1),
                  torch.tensor(0.3, dtype=torch.bfloat16)],
    )  # fmt: skip
    def test_of_any_ratio(self, ops, ratio):
        src, ptr = normal(70, 3), clouds(20, 50)
        assert torch.equal(ops.fps(src, ptr, ratio, False), port.reference_fps(src, ptr, ratio))

    def test_of_other_shapes(self, ops):
        src, ptr = normal(70, 3, 2), clouds(20, 50)
        ratio = torch.tensor(0.5)
        expected = ops.fps(src.flatten(1), ptr, ratio, False)
        assert torch.equal(ops.fps(src, ptr, ratio, False), expected)
        assert torch.equal(ops.fps(src.transpose(1, 2).contiguous().transpose(1, 2), ptr, ratio, False), expected)
        assert torch.equal(ops.fps(src[:, 0, 0], ptr, ratio, False), ops.fps(src[:, 0, :1], ptr, ratio, False))
        assert ops.fps(torch.zeros(0, 3), clouds(0), ratio, False).shape == (0,)

    def test_begin_anywhere_if_wanted(self, ops):
        src, ptr = normal(90, 3), clouds(40, 0, 50)
        starts = set()
        for seed in range(8):
            torch.manual_seed(seed)
            found = ops.fps(src, ptr, torch.tensor(0.5), True)
            torch.manual_seed(seed)
            assert torch.equal(ops.fps(src, ptr, torch.tensor(0.5), True), found)
            assert len(found.unique()) == 45
            assert (found[:20] < 40).all()
            assert (found[20:] >= 40).all()
            starts.add((int(found[0]), int(found[20])))
        assert len(starts) > 4

    @pytest.mark.parametrize(
        ("match", "change"),
        [
            (r"'src' must have a row", {"src": torch.tensor(1.0)}),
            (r"'src' must have a feature", {"src": torch.zeros(4, 0)}),
            (r"'ptr' must ascend .* got 5 after 0", {"ptr": torch.tensor([0, 5])}),
            (r"'ratio' must have one number, or one for each of the 1 clouds", {"ratio": torch.ones(2)}),
            (r"'ratio' must be finite and not negative", {"ratio": torch.tensor(-1.0)}),
        ],
    )
    def test_of_wrong_arguments(self, ops, match, change):
        arguments = {"src": torch.zeros(4, 3), "ptr": clouds(4), "ratio": torch.tensor(0.5)} | change
        with pytest.raises(ValueError, match=match):
            ops.fps(**arguments, random_start=False)


class TestGraclus:
    @pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int8], ids=str)
    def test_with_weights(self, ops, dtype):
        rowptr, col, _ = port.graph("1k", torch.float32)
        weight = cells(len(col), dtype=dtype) - 2
        order = torch.randperm(1000, generator=torch.Generator().manual_seed(3))
        found = ops.graclus(rowptr, col, weight, order)
        assert torch.equal(found, port.reference_graclus(rowptr, col, weight, order))

    def test_without_weights(self, ops):
        rowptr, col, _ = port.graph("1k", torch.float32)
        order = torch.randperm(1000, generator=torch.Generator().manual_seed(3))
        assert torch.equal(ops.graclus(rowptr, col, None, order), port.reference_graclus(rowptr, col, None, order))

    def test_order_is_that_of_the_generator(self, ops):
        rowptr, col, weight = port.graph("1k", torch.float32)
        torch.manual_seed(7)
        found = ops.graclus(rowptr, col, weight)
        order = torch.randperm(1000, generator=torch.Generator().manual_seed(7))
        assert torch.equal(found, ops.graclus(rowptr, col, weight, order))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_edges_to_itself(self, ops, weighted):
        rowptr, col = torch.tensor([0, 2, 3]), torch.tensor([0, 1, 0])
        weight = torch.tensor([3.0, 1.0, 1.0]) if weighted else None
        order = torch.tensor([0, 1])
        found = ops.graclus(rowptr, col, weight, order)
        assert torch.equal(found, port.reference_graclus(rowptr, col, weight, order))

    def test_of_nothing(self, ops):
        none = torch.zeros(0, dtype=torch.int64)
        assert ops.graclus(torch.tensor([0]), none).shape == (0,)
        assert torch.equal(ops.graclus(torch.zeros(4, dtype=torch.int64), none), torch.arange(3))

    @pytest.mark.parametrize(
        ("error", "match", "change"),
        [
            (IndexError, "'col' must have nodes from 0 to 2, got 3 for edge 0", {"col": torch.tensor([3, 1, 0])}),
            (IndexError, "'col' must have nodes from 0 to 2, got -1", {"col": torch.tensor([-1, -1, -1])}),
            (
                ValueError,
                "'rowptr' must ascend .* node 1 has others",
                {"rowptr": torch.tensor([0, 2, 1, 3]), "col": torch.tensor([2, 2, 0])},
            ),
            (ValueError, "'rowptr' must ascend", {"rowptr": torch.tensor([0, 2, 2, 4])}),
            (ValueError, "'weight' must have a number for each of the 3 edges", {"weight": torch.ones(2)}),
            (ValueError, "'col' must have 1 dimension", {"col": torch.ones(3, 1, dtype=torch.int64)}),
            (TypeError, "'col' must have dtype torch.int64", {"col": torch.ones(3)}),
            (ValueError, "'order' must be a permutation of the 3 nodes", {"order": torch.arange(2)}),
            (IndexError, "'order' must have each of the 3 nodes once, got 1", {"order": torch.tensor([0, 1, 1])}),
            (IndexError, "'order' must have each of the 3 nodes once, got 3", {"order": torch.tensor([0, 1, 3])}),
        ],
    )
    def test_of_wrong_arguments(self, ops, error, match, change):
        arguments = {"rowptr": torch.tensor([0, 2, 2, 3]), "col": torch.tensor([1, 2, 0]), "order": torch.arange(3)}
        with pytest.raises(error, match=match):
            ops.graclus(**arguments | change)


class TestGrid:
    @pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8], ids=str)
    @pytest.mark.parametrize("bounds", [False, True])
    def test_finds_the_cell(self, ops, threads, dtype, bounds):
        pos = cells(9000, 3, dtype=dtype, most=90)
        size = torch.tensor([4, 2.5, 7], dtype=dtype)
        edges = (torch.zeros(3, dtype=dtype), torch.full((3,), 100, dtype=dtype)) if bounds else ()
        assert torch.equal(ops.grid(pos, size, *edges), port.reference_grid(pos, size, *edges))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32], ids=str)
    def test_of_other_types_together(self, ops, dtype):
        pos, size, start = cells(50, 2, dtype=dtype), torch.tensor([1.5, 2.0]), torch.tensor([-1, -2])
        for of_size in (torch.float32, torch.float64, torch.bfloat16):
            expected = port.reference_grid(pos, size.to(of_size), start)
            assert torch.equal(ops.grid(pos, size.to(of_size), start), expected)

    def test_of_other_shapes(self, ops):
        pos, size = normal(3, 50), torch.tensor([0.5, 0.2, 0.7])
        expected = ops.grid(pos.t().contiguous(), size)
        assert torch.equal(ops.grid(pos.t(), size), expected)
        assert torch.equal(ops.grid(pos.t().reshape(50, 3, 1), size), expected)
        assert torch.equal(ops.grid(pos[0], size[:1]), ops.grid(pos[:1].t(), size[:1]))
        assert ops.grid(torch.zeros(0, 3), size).shape == (0,)

    def test_of_wrong_arguments(self, ops):
        with pytest.raises(ValueError, match="'size' must have a number for each of the 3 dimensions"):
            ops.grid(torch.zeros(4, 3), torch.ones(2))
        with pytest.raises(ValueError, match="'start' must have a number for each of the 3 dimensions"):
            ops.grid(torch.zeros(4, 3), torch.ones(3), torch.ones(2))
        with pytest.raises(ValueError, match="'pos' must have a row"):
            ops.grid(torch.tensor(1.0), torch.ones(1))


CALLS = {
    "knn": lambda n: (normal(n, 3), normal(n + 2, 3, seed=1), None, None, 2),
    "radius": lambda n: (normal(n, 3), normal(n + 2, 3, seed=1), clouds(2, n - 2), clouds(n, 2), 1.0, 4),
    "fps": lambda n: (normal(n, 3), clouds(1, n - 1), torch.tensor(0.5), False),
    "graclus": lambda n: (clouds(*[1] * n), torch.arange(n).flip(0), torch.ones(n), torch.arange(n)),
    "grid": lambda n: (normal(n, 3), torch.ones(3)),
}


@pytest.mark.parametrize("name", CALLS)
class TestOperator:
    def test_keeps_what_an_operator_promises(self, ops, name):
        result = torch.library.opcheck(getattr(ops, name).default, CALLS[name](9))
        assert set(result.values()) == {"SUCCESS"}

    def test_is_compiled_once_for_all_sizes(self, ops, name):
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            check_dynamic_shapes(getattr(ops, name), CALLS[name])
