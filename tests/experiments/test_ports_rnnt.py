"""The port of fast_rnnt in docs/experiments/ports computes the recursion as defined, forward and backward."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import experiments
from experiments.harness import building
from interop.testing import check_dynamic_shapes

pytestmark = pytest.mark.slow

TOLERANCE = {torch.float32: {"rtol": 1e-4, "atol": 1e-4}, torch.float64: {"rtol": 1e-11, "atol": 1e-11}}
LAYOUTS = {
    "contiguous": lambda t: t.contiguous(),
    "columns together": lambda t: t.mT.contiguous().mT,
    "items together": lambda t: t.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    "every second": lambda t: torch.stack((t, torch.full_like(t, torch.nan)), -1).flatten(-2)[..., ::2],
    "inside another": lambda t: torch.nn.functional.pad(t, (3, 5, 1, 2, 1, 1), value=torch.nan)[1:-1, 1:-2, 3:-5],
    "one item again and again": lambda t: t[:1].expand(t.shape),
}


@pytest.fixture(scope="module")
def rnnt():
    """The port, compiled."""
    building.build("ports")
    return SimpleNamespace(**{name: experiments.load("ports", f"rnnt.{name}") for name in ("loss", "port")})


@pytest.fixture(scope="module")
def recursion(rnnt):
    """The recursion, as users call it."""
    return rnnt.loss.mutual_information_recursion


def lattice(batch, symbols, frames, modified=False, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    px = torch.randn(batch, symbols, frames + (not modified), generator=generator, dtype=torch.float64)
    py = torch.randn(batch, symbols + 1, frames, generator=generator, dtype=torch.float64)
    return px.to(dtype), py.to(dtype)


def random_boundary(batch, symbols, frames, seed=0):
    generator = torch.Generator().manual_seed(seed)
    ends = [torch.randint(0, n + 1, (batch, 2), generator=generator).sort(1).values for n in (symbols, frames)]
    return torch.stack([ends[0][:, 0], ends[1][:, 0], ends[0][:, 1], ends[1][:, 1]], 1)


def log_add(values):
    largest = max(values, default=-math.inf)
    return largest if math.isinf(largest) else largest + math.log(sum(math.exp(v - largest) for v in values))


def by_definition(px, py, boundary=None):
    """Scores, and how often the paths take each step, from sums over all paths to and from each point, in double."""
    lag = int(px.size(2) == py.size(2))
    if boundary is None:
        boundary = torch.tensor([0, 0, px.size(1), py.size(2)]).expand(px.size(0), 4)
    scores, grads = [], (torch.zeros(px.shape, dtype=torch.float64), torch.zeros(py.shape, dtype=torch.float64))
    for b, (s_begin, t_begin, s_end, t_end) in enumerate(boundary.tolist()):
        x, y = px[b].tolist(), py[b].tolist()
        points = list(itertools.product(range(s_begin, s_end + 1), range(t_begin, t_end + 1)))
        steps = {point: [] for point in points}  # target, score and gradient of each step
        for s, t in points:
            if (s + 1, t + lag) in steps:
                steps[s, t].append(((s + 1, t + lag), x[s][t], grads[0]))
            if (s, t + 1) in steps:
                steps[s, t].append(((s, t + 1), y[s][t], grads[1]))
        arriving = {point: [] for point in points}
        arriving[s_begin, t_begin].append(0.0)
        to = {}
        for point in points:
            to[point] = log_add(arriving[point])
            for target, score, _ in steps[point]:
                arriving[target].append(to[point] + score)
        onward = {(s_end, t_end): 0.0}
        for point in reversed(points):
            if point not in onward:
                onward[point] = log_add([onward[target] + score for target, score, _ in steps[point]])
        scores.append(to[s_end, t_end])
        for point in points:
            for target, score, grad in steps[point]:
                if math.isfinite(scores[-1]):
                    grad[b][point] = math.exp(to[point] + score + onward[target] - scores[-1])
    return torch.tensor(scores, dtype=torch.float64), *grads


def paths(symbols, frames, modified):
    """All paths, as lists of steps (whether it is a symbol, s, t)."""
    for which in itertools.combinations(range(frames + (0 if modified else symbols)), symbols):
        s, t, path = 0, 0, []
        for step in range(frames + (0 if modified else symbols)):
            path.append((step in which, s, t))
            s, t = s + (step in which), t + (modified or step not in which)
        yield path


def assert_as_defined(recursion, px, py, boundary=None):
    expected = by_definition(px, py, boundary)
    leaves = px.requires_grad_(), py.requires_grad_()
    scores = recursion(*leaves, boundary)
    weights = torch.linspace(1, 2, len(scores), dtype=scores.dtype)
    grads = torch.autograd.grad((scores * weights).nan_to_num(neginf=0).sum(), leaves)
    without = recursion(px.detach(), py.detach(), boundary)
    assert torch.equal(scores, without)
    assert scores.dtype == px.dtype
    torch.testing.assert_close(scores.double(), expected[0], **TOLERANCE[px.dtype])
    possible = expected[0].isfinite()
    for grad, share in zip(grads, expected[1:], strict=True):
        assert grad.shape == share.shape
        assert grad.isfinite().all()
        torch.testing.assert_close(
            grad[possible].double(), (share * weights.double()[:, None, None])[possible], **TOLERANCE[px.dtype]
        )


class TestRecursion:
    @pytest.mark.parametrize("modified", [False, True], ids=["regular", "modified"])
    @pytest.mark.parametrize("size", [(1, 1), (1, 4), (2, 3), (3, 3), (3, 5), (4, 2)], ids=str)
    def test_is_the_sum_over_all_paths(self, recursion, size, modified):
        px, py = lattice(3, *size, modified)
        scores, (px_grad, py_grad) = recursion(px, py, None, True)
        for b in range(3):
            every = [
                sum((px if symbol else py)[b, s, t].item() for symbol, s, t in path) for path in paths(*size, modified)
            ]
            assert scores[b].item() == pytest.approx(log_add(every))
            if every:
                assert (px_grad[b].sum().item(), py_grad[b].sum().item()) == pytest.approx(
                    (size[0], size[1] - (size[0] if modified else 0))
                )

    @settings(deadline=None, max_examples=150)
    @given(st.data())
    def test_any_sizes_bounds_and_strides(self, recursion, data):
        batch = data.draw(st.integers(0, 3))
        symbols, frames = (data.draw(st.integers(0, data.draw(st.sampled_from([3, 20])))) for _ in "ST")
        seed = data.draw(st.integers(0, 2**20))
        dtype = data.draw(st.sampled_from(list(TOLERANCE)))
        px, py = lattice(batch, symbols, frames, data.draw(st.booleans(), "modified"), dtype, seed)
        some = torch.rand(px.shape, generator=torch.Generator().manual_seed(seed)) < data.draw(
            st.sampled_from([0.0, 0.1, 0.7]), "of px -inf"
        )
        px = px.masked_fill(some, -torch.inf)
        boundary = random_boundary(batch, symbols, frames, seed) if data.draw(st.booleans(), "boundary") else None
        layouts = [LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))] for _ in "xy"]
        assert_as_defined(recursion, layouts[0](px).detach(), layouts[1](py).detach(), boundary)

    # Around the 16 lanes of a vector and the 16 steps of a block, with either dimension longer.
    @pytest.mark.parametrize("modified", [False, True], ids=["regular", "modified"])
    @pytest.mark.parametrize("size", [(15, 16), (16, 15), (17, 33), (33, 17), (50, 4), (4, 50), (63, 64)], ids=str)
    def test_sizes_around_those_of_blocks(self, recursion, size, modified):
        assert_as_defined(recursion, *lattice(2, *size, modified))
        assert_as_defined(recursion, *lattice(2, *size, modified), random_boundary(2, *size))

    @pytest.mark.parametrize("modified", [False, True], ids=["regular", "modified"])
    @pytest.mark.parametrize("size", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 0, 0)], ids=str)
    def test_lengths_of_zero(self, recursion, size, modified):
        assert_as_defined(recursion, *lattice(*size, modified))
        assert_as_defined(recursion, *lattice(*size, modified), random_boundary(*size))

    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    def test_scores_far_from_zero(self, recursion, dtype):
        """Scores are right even if exp(score) is zero or infinite."""
        for offset in (-300.0, 300.0):
            px, py = (t + offset for t in lattice(2, 6, 9, dtype=dtype))
            scores = recursion(px, py)
            torch.testing.assert_close(scores.double(), by_definition(px, py)[0], rtol=1e-6, atol=0)

    def test_on_two_threads_it_is_the_same(self, recursion):
        px, py = lattice(7, 40, 120)
        boundary = random_boundary(7, 40, 120)
        before = torch.get_num_threads()
        results = []
        try:
            for threads in (1, 2):
                torch.set_num_threads(threads)
                scores, grads = recursion(px, py, boundary, True)
                results.append((scores, *grads))
        finally:
            torch.set_num_threads(before)
        torch.testing.assert_close(*results, rtol=0, atol=0)


class TestSpecialNumbers:
    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    def test_the_sum_of_two_terms_is_the_originals(self, recursion, dtype):
        """Terms that differ by infinity or nan have the larger one as sum, or the first if they do not compare."""
        # The gradient of a term is exp(term - sum), with 0 for a sum that is not finite. It is zero if not finite.
        numbers = torch.tensor([-torch.inf, -1e30, -1000, -1, 0, 2, 1e30, torch.inf, torch.nan], dtype=dtype).tolist()
        for first, second in itertools.product(numbers, repeat=2):
            # One symbol and two frames. The terms of point (1, 2) are px[0, 2] and py[1, 1], after steps of score 0.
            px = torch.tensor([[[-torch.inf, 0.0, first]]], dtype=dtype)
            py = torch.tensor([[[0.0, 0.0], [0.0, second]]], dtype=dtype)
            (score,), (px_grad, py_grad) = recursion(px, py, None, True)
            difference = abs(first - second)
            larger = second if first < second else first
            total = larger + math.log1p(math.exp(-difference)) if math.isfinite(difference) else larger
            expected = torch.tensor(total, dtype=dtype)
            torch.testing.assert_close(score, expected, equal_nan=True)
            total = expected.item()  # rounded
            power = first - (total if math.isfinite(total) else 0)
            share = math.exp(power) if power < 80 else power
            shares = [share, 1 - share] if abs(share) < 1e30 else [0.0, 0.0]
            found = torch.stack([px_grad[0, 0, 2], py_grad[0, 1, 1]])
            torch.testing.assert_close(found, torch.tensor(shares, dtype=dtype), **TOLERANCE[dtype])

    def test_more_symbols_than_frames_have_no_modified_path(self, recursion):
        px, py = lattice(1, 4, 3, modified=True)
        scores, grads = recursion(px, py, None, True)
        assert scores.tolist() == [-torch.inf]
        assert all(grad.isfinite().all() for grad in grads)


class TestAutograd:
    @pytest.mark.parametrize("modified", [False, True], ids=["regular", "modified"])
    @pytest.mark.parametrize("bounded", [False, True], ids=["whole", "ragged"])
    def test_torch_finds_nothing_wrong(self, rnnt, modified, bounded):
        leaves = [t.requires_grad_() for t in lattice(2, 3, 5, modified)]
        boundary = torch.tensor([[0, 1, 2, 5], [1, 0, 3, 4]]) if bounded else None
        operator = torch.ops.ports_rnnt.mutual_information
        assert torch.autograd.gradcheck(lambda x, y: operator(x, y, boundary, True)[0], leaves)
        for calc_gradients in (False, True):
            torch.library.opcheck(operator.default, (*leaves, boundary, calc_gradients))

    def test_one_compilation_for_all_sizes(self, recursion):
        def arguments(n, modified=False):
            return [t.requires_grad_() for t in lattice(n, n + 2, 2 * n + 3, modified)]

        check_dynamic_shapes(recursion, arguments)
        check_dynamic_shapes(recursion, lambda n: arguments(n, True))
        check_dynamic_shapes(recursion, lambda n: (*arguments(n), random_boundary(n, n + 2, 2 * n + 3)))

    def test_gradients_that_were_not_asked_for_are_computed_later(self, rnnt):
        leaves = [t.requires_grad_() for t in lattice(2, 3, 5)]
        for boundary in (None, torch.tensor([[0, 1, 2, 5], [1, 0, 3, 4]])):
            early, late = (
                torch.ops.ports_rnnt.mutual_information(*leaves, boundary, wanted) for wanted in (True, False)
            )
            assert [t.numel() for t in late[1:]] == [0, 0]
            grads = [torch.autograd.grad(result[0].prod(), leaves) for result in (early, late)]
            torch.testing.assert_close(*grads, rtol=0, atol=0)

    def test_only_one_argument_needs_a_gradient(self, recursion):
        px, py = lattice(2, 3, 5)
        both = [t.clone().requires_grad_() for t in (px, py)]
        wanted = torch.autograd.grad(recursion(*both).sum(), both)
        for i, arguments in enumerate(((both[0], py), (px, both[1]))):
            torch.testing.assert_close(torch.autograd.grad(recursion(*arguments).sum(), both[i])[0], wanted[i])

    def test_backward_changes_nothing_that_it_returned(self, recursion):
        """The original multiplies in place the gradients that it has returned and kept."""
        leaves = [t.requires_grad_() for t in lattice(2, 3, 5)]
        scores, grads = recursion(*leaves, None, True)
        assert not any(grad.requires_grad for grad in grads)
        before = [grad.clone() for grad in grads]
        for _ in range(2):
            found = torch.autograd.grad(3 * scores.sum(), leaves, retain_graph=True)
            torch.testing.assert_close(found, tuple(3 * grad for grad in before))
        torch.testing.assert_close(list(grads), before, rtol=0, atol=0)

    def test_a_second_derivative_raises(self, recursion):
        leaves = [t.requires_grad_() for t in lattice(2, 3, 5)]
        grads = torch.autograd.grad(recursion(*leaves).sum(), leaves, create_graph=True)
        with pytest.raises(NotImplementedError, match="mutual_information has no second derivative"):
            grads[0].sum().backward()


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("px", "py", "boundary", "error", "message"),
        [
            ((2, 3), (2, 4, 5), None, ValueError, r"px must have 3 dimensions.*got 2 \(sizes \[2, 3\]\)"),
            ((2, 3, 6), (2, 5), None, ValueError, r"py must have 3 dimensions.*got 2 \(sizes \[2, 5\]\)"),
            ((2, 3, 7), (2, 4, 5), None, ValueError, r"got \[2, 4, 5\] where px has \[2, 3, 7\]"),
            ((2, 3, 6), (2, 3, 5), None, ValueError, r"py must have sizes \[B, S \+ 1, T\].*got \[2, 3, 5\]"),
            ((2, 3, 6), (1, 4, 5), None, ValueError, r"got \[1, 4, 5\] where px has \[2, 3, 6\]"),
            ((2, 3, 6), (2, 4, 5), [[0, 0, 3, 5]], ValueError, r"sizes \[2, 4\], a row for each .* got \[1, 4\]"),
            ((1, 3, 6), (1, 4, 5), [[0, 0, 3]], ValueError, r"sizes \[1, 4\], a row for each item of px, got \[1, 3\]"),
            ((1, 3, 6), (1, 4, 5), [0, 0, 3, 5], ValueError, r"boundary must have 2 dimensions, \[B, 4\], got 1"),
            ((1, 3, 6), (1, 4, 5), [[0.0, 0, 3, 5]], TypeError, r"boundary must be of int64, got Float"),
            *(
                ((1, 3, 6), (1, 4, 5), [row], IndexError, r"s_end <= 3 .* t_end <= 5, got \[.*\] for item 0")
                for row in ([-1, 0, 3, 5], [0, -1, 3, 5], [0, 0, 4, 5], [0, 0, 3, 6], [2, 0, 1, 5], [0, 4, 3, 3])
            ),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("return_grad", [False, True])
    def test_they_are_named(self, recursion, px, py, boundary, error, message, return_grad):
        with pytest.raises(error, match=f"mutual_information: .*{message}"):
            recursion(
                torch.zeros(px), torch.zeros(py), None if boundary is None else torch.tensor(boundary), return_grad
            )

    def test_dtypes(self, recursion):
        px, py = lattice(1, 3, 5)
        with pytest.raises(TypeError, match=r"py must have the dtype of px, Double, got Float; convert it with .to"):
            recursion(px, py.float())
        with pytest.raises(NotImplementedError, match="'BFloat16', only for Float, Double"):
            recursion(px.bfloat16(), py.bfloat16())


class TestLosses:
    @pytest.mark.parametrize("rnnt_type", ["regular", "modified", "constrained"])
    @pytest.mark.parametrize("bounded", [False, True], ids=["whole", "ragged"])
    def test_are_those_of_the_definition(self, rnnt, rnnt_type, bounded):
        lm, am, symbols, blank = rnnt.port.simple_logits("3 x 4 x 7 x 6", torch.float64)
        logits = torch.randn(3, 7, 5, 6, dtype=torch.float64, requires_grad=True)
        boundary = torch.tensor([[0, 0, 4, 7], [0, 0, 1, 3], [0, 0, 3, 3]]) if bounded else None
        for name, definition, leaves in (
            ("rnnt_loss_simple", rnnt.port.simple_loss, (lm.requires_grad_(), am.requires_grad_())),
            ("rnnt_loss", rnnt.port.loss, (logits,)),
        ):
            function = getattr(rnnt.loss, name)
            expected = definition(*leaves, symbols, blank, boundary, rnnt_type)
            found = function(*leaves, symbols, blank, boundary, rnnt_type, reduction="none")
            torch.testing.assert_close(found, expected)
            grads = [torch.autograd.grad(result.sum(), leaves) for result in (found, expected)]
            torch.testing.assert_close(*grads)
            for reduction in ("mean", "sum"):
                reduced = function(*leaves, symbols, blank, boundary, rnnt_type, reduction=reduction)
                torch.testing.assert_close(reduced, getattr(expected, reduction)())

    @pytest.mark.parametrize("bounded", [False, True], ids=["whole", "ragged"])
    def test_a_penalty_for_late_symbols(self, rnnt, recursion, bounded):
        """Each symbol costs the penalty times the number of frames from the middle frame to it."""
        lm, am, symbols, blank = rnnt.port.simple_logits("2 x 3 x 6 x 5", torch.float64)
        boundary = torch.tensor([[0, 0, 3, 6], [0, 0, 2, 4]]) if bounded else None
        px, py = rnnt.loss.get_rnnt_logprobs(lm, am, symbols, blank, "regular", boundary)
        middle = torch.tensor([2.5, 1.5 if bounded else 2.5])
        px = px - 0.3 * (torch.arange(7.0) - middle[:, None, None])
        found, (px_grad, _) = rnnt.loss.rnnt_loss_simple(
            lm, am, symbols, blank, boundary, delay_penalty=0.3, reduction="none", return_grad=True
        )
        torch.testing.assert_close(found, -recursion(px, py, boundary))
        torch.testing.assert_close(px_grad.sum((1, 2)), torch.tensor([3.0, 2 if bounded else 3.0]).double())

    def test_torch_compile_takes_one_whole(self, rnnt):
        lm, am, symbols, blank = rnnt.port.simple_logits("2 x 3 x 6 x 5", torch.float64)
        compiled = torch.compile(rnnt.loss.rnnt_loss_simple, fullgraph=True, backend="aot_eager")
        boundary = torch.tensor([[0, 0, 3, 6], [0, 0, 2, 4]])
        results = []
        for function in (rnnt.loss.rnnt_loss_simple, compiled):
            leaves = lm.clone().requires_grad_(), am.clone().requires_grad_()
            loss = function(*leaves, symbols, blank, boundary)
            results.append((loss.detach(), *torch.autograd.grad(loss, leaves)))
        torch.testing.assert_close(*results)

    def test_wrong_arguments_are_named(self, rnnt):
        lm, am, symbols, blank = rnnt.port.simple_logits("2 x 3 x 2 x 5", torch.float64)
        for options, message in (
            ({"rnnt_type": "other"}, "'rnnt_type' must be 'regular', 'modified' or 'constrained', got 'other'"),
            ({"rnnt_type": "modified"}, "takes a frame for each symbol, got 3 symbols and 2 frames"),
            ({"rnnt_type": "modified", "boundary": torch.tensor([[0, 0, 3, 2]] * 2)}, "'boundary' with t_end < s_end"),
            ({"boundary": torch.tensor([[0, 0, 0, 2]] * 2)}, "'boundary' must leave each item a symbol"),
            ({"reduction": "max"}, "'reduction' must be 'none', 'mean' or 'sum', got 'max'"),
        ):
            with pytest.raises(ValueError, match=message):
                rnnt.loss.rnnt_loss_simple(lm, am, symbols, blank, **options)
        with pytest.raises(ValueError, match="'symbols' must have a symbol at least"):
            rnnt.loss.rnnt_loss_simple(lm[:, :1], am, symbols[:, :0], blank)


class TestPort:
    def test_each_operation_is_its_reference(self, rnnt):
        base = experiments.load("ports", "base")
        for operation in rnnt.port.PORT.operations:
            arguments = operation.inputs("2 x 4 x 7 x 6" if "loss" in operation.name else "2 x 4 x 7", torch.float64)
            leaves = [t.requires_grad_() for t in base.floats_of(arguments)] if operation.backward else []
            results = []
            for function in (operation.ours, operation.reference):
                found = base.results_of(function(*arguments))
                grads = torch.autograd.grad(sum(t.sum() for t in found), leaves) if leaves else ()
                results.append((*(t.detach() for t in found), *grads))
            torch.testing.assert_close(*results, msg=lambda text, name=operation.name: f"{name}: {text}")
