"""The monotonic alignment search of docs/experiments: it finds the best path, as the usual core does, or raises."""

import itertools
import threading

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import experiments
from experiments.harness import building, driver, results
from interop.cli import CommandError
from interop.testing import check_dynamic_shapes

NAME = "monotonic-alignment"

pytestmark = pytest.mark.slow
LAYOUTS = {
    "frames together": lambda t: t.contiguous(),
    "texts together": lambda t: t.transpose(1, 2).contiguous().transpose(1, 2),
    "items together": lambda t: t.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    "every second": lambda t: torch.stack((t, torch.full_like(t, torch.nan)), -1).flatten(-2)[..., ::2],
    "inside another": lambda t: torch.nn.functional.pad(t, (3, 5, 1, 2, 1, 1), value=torch.nan)[1:-1, 1:-2, 3:-5],
}


@pytest.fixture(scope="session")
def ways():
    """The module with all searches, compiled."""
    building.build(NAME)
    return experiments.load(NAME, "ways")


@pytest.fixture(params=["cython", "op", "pytorch"])
def search(request, ways):
    """A search that is compared with the usual core."""
    return getattr(ways, request.param)


@pytest.fixture
def cython(ways):
    """The search in Cython."""
    return ways.cython


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    """The number of threads that torch uses."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def full(scores):
    """Lengths with which each item uses all of `scores`."""
    batch, texts, frames = scores.shape
    return torch.full((batch,), texts), torch.full((batch,), frames)


def ragged(batch, texts, frames, seed=0):
    """Random lengths of each item, with no more texts than frames."""
    generator = torch.Generator().manual_seed(seed)
    of_text = torch.randint(1, texts + 1, (batch,), generator=generator)
    return of_text, (of_text + torch.randint(0, frames, (batch,), generator=generator)).clamp(max=frames).max(of_text)


def paths(texts, frames):
    """All monotonic paths, each as the text of every frame."""
    for moves in itertools.combinations(range(1, frames), texts - 1):
        yield torch.tensor([sum(move <= frame for move in moves) for frame in range(frames)])


def path_of(mask, texts, frames):
    """The text of each frame of an item, whose mask must be a path and nothing else."""
    assert mask.dtype == torch.int32
    assert set(mask.unique().tolist()) <= {0, 1}
    assert mask.sum() == mask[:texts, :frames].sum() == frames
    assert (mask[:, :frames].sum(0) == 1).all()
    path = mask[:, :frames].argmax(0)
    if frames:
        assert path[0] == 0
        assert path[-1] == texts - 1
        assert set(path.diff().tolist()) <= {0, 1}
    return path


class TestBestPath:
    @pytest.mark.parametrize("size", [(1, 1), (1, 4), (2, 2), (2, 5), (3, 6), (4, 4), (5, 8), (7, 9)], ids=str)
    def test_is_the_best_of_all_paths(self, search, size):
        texts, frames = size
        scores = torch.randn(6, texts, frames, generator=torch.Generator().manual_seed(texts * frames))
        masks = search(scores, *full(scores))
        for item, mask in zip(scores, masks, strict=True):
            totals = [item[path, torch.arange(frames)].double().sum() for path in paths(texts, frames)]
            best = item[path_of(mask, texts, frames), torch.arange(frames)].double().sum()
            assert best == max(totals)

    # Text lengths around the 16 texts of a vector and the 4 of a transpose, frames around the 16 of a block.
    @pytest.mark.parametrize("size", [(3, 15, 16), (3, 16, 47), (3, 17, 17), (2, 33, 64), (4, 50, 129), (6, 100, 300)])
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.usefixtures("threads")
    def test_is_that_of_the_usual_core(self, ways, cython, size, layout):
        scores = torch.randn(size, generator=torch.Generator().manual_seed(1))
        given = LAYOUTS[layout](scores)
        assert torch.equal(given, scores)
        for lengths in (full(scores), ragged(*size)):
            expected = ways.usual(scores, *lengths)
            assert torch.equal(cython(given, *lengths), expected)
            assert torch.equal(ways.pytorch(given, *lengths), expected)
            frames_first = ways.usual(scores.transpose(1, 2).contiguous(), *lengths, frames_first=True)
            assert torch.equal(frames_first.transpose(1, 2), expected)

    @settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_of_any_sizes_lengths_and_ties(self, ways, cython, data):
        batch, texts, frames = (
            data.draw(st.integers(1, most), name) for name, most in zip("btf", (4, 40, 60), strict=True)
        )
        seed = data.draw(st.integers(0, 2**32 - 1), "seed")
        few = data.draw(st.sampled_from([1, 2, 4, 1000]), "number of different scores")
        texts = min(texts, frames)
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randint(0, few, (batch, texts, frames), generator=generator).float()
        lengths = ragged(batch, texts, frames, seed)
        layout = data.draw(st.sampled_from(sorted(LAYOUTS)), "layout")
        expected = ways.usual(scores, *lengths)
        for search in (cython, ways.pytorch):
            mask = search(LAYOUTS[layout](scores), *lengths)
            assert torch.equal(mask, expected)
            for item, *sizes in zip(mask, *lengths, strict=True):
                path_of(item, *map(int, sizes))

    def test_stays_where_totals_are_equal(self, search):
        mask = search(torch.zeros(1, 3, 6), *full(torch.zeros(1, 3, 6)))
        # Seen from the end, the path stays at a text for as long as it can.
        assert path_of(mask[0], 3, 6).tolist() == [0, 1, 2, 2, 2, 2]

    def test_avoids_what_is_minus_infinite(self, search):
        scores = torch.zeros(1, 3, 40)
        scores[0, 1, 5:20] = -torch.inf
        scores[0, 2, :30] = -torch.inf
        path = path_of(search(scores, *full(scores))[0], 3, 40)
        assert torch.isfinite(scores[0, path, torch.arange(40)]).all()

    def test_is_a_path_even_if_all_are_minus_infinite(self, search):
        scores = torch.full((2, 20, 50), -torch.inf)
        for mask in search(scores, *full(scores)):
            path_of(mask, 20, 50)

    def test_of_totals_below_what_the_usual_core_calls_unreachable(self, ways, search):
        """The core's -1e9 is larger than a total of such scores, so it follows paths that do not exist."""
        scores = -torch.tensor([[[3, 37, 5, 18, 9], [40, 31, 7, 39, 9], [40, 17, 14, 4, 33.0]]]) * 2**27
        best = max(paths(3, 5), key=lambda path: scores[0, path, torch.arange(5)].sum())
        assert torch.equal(path_of(search(scores, *full(scores))[0], 3, 5), best)
        assert not torch.equal(path_of(ways.usual(scores, *full(scores))[0], 3, 5), best)

    def test_ignores_what_no_path_can_use(self, cython):
        scores = torch.randn(2, 21, 40)
        lengths = torch.tensor([21, 18]), torch.tensor([30, 18])
        expected = cython(scores, *lengths)
        for value in (torch.nan, torch.inf):
            spoilt = scores.clone()
            for item, texts, frames in zip(spoilt, *lengths, strict=True):
                text, frame = torch.arange(21)[:, None], torch.arange(40)
                item[(text > frame) | (text < texts - frames + frame) | (text >= texts) | (frame >= frames)] = value
            for layout in LAYOUTS.values():
                assert torch.equal(cython(layout(spoilt), *lengths), expected)


class TestRefusals:
    @pytest.mark.parametrize("value", [torch.nan, -torch.nan, torch.inf])
    @pytest.mark.parametrize("layout", ["frames together", "texts together"])
    def test_nan_and_inf_wherever_a_path_can_pass(self, cython, value, layout):
        texts, frames = 18, 23
        for text in range(texts):
            for frame in range(text, frames - texts + text + 1):
                scores = torch.randn(3, texts, frames)
                scores[1, text, frame] = value
                # A neighbour of -inf does not hide the value.
                scores[1, text, min(frame + 1, frames - 1)] += -torch.inf if frame < frames - texts + text else 0
                with pytest.raises(ValueError, match=r"'scores' must have no nan and no inf .* item 1 has"):
                    cython(LAYOUTS[layout](scores), *full(scores))

    def test_sums_beyond_float32(self, cython):
        scores = torch.full((1, 2, 3), 2e38)
        with pytest.raises(ValueError, match="no sums beyond float32; item 0 has"):
            cython(scores, *full(scores))

    @pytest.mark.parametrize(
        ("texts", "frames", "message"),
        [
            ([5, 2], [8, 8], "must lie within the sizes of 'scores', 4 and 8, got 5 and 8 for item 0"),
            ([4, 2], [8, 9], "must lie within the sizes of 'scores', 4 and 8, got 2 and 9 for item 1"),
            ([4, -1], [8, 8], "got -1 and 8 for item 1"),
            ([4, 1], [8, -1], "got 1 and -1 for item 1"),
            ([4, 4], [8, 3], "takes a frame at least for each text and a text for each frame, got 4 and 3 for item 1"),
            ([4, 0], [8, 3], "got 0 and 3 for item 1"),
            ([4, 4, 4], [8, 8], "must have a length for each of the 2 items of 'scores', got 3 and 2"),
            ([4, 4], [8], "must have a length for each of the 2 items of 'scores', got 2 and 1"),
        ],
    )
    def test_lengths(self, cython, texts, frames, message):
        with pytest.raises(ValueError, match=message):
            cython(torch.zeros(2, 4, 8), torch.tensor(texts), torch.tensor(frames))

    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.complex64])
    def test_other_dtypes(self, cython, dtype):
        scores = torch.zeros(2, 4, 8, dtype=dtype)
        with pytest.raises(TypeError, match=rf"'scores' must have dtype torch\.float32, got {dtype}; convert it with"):
            cython(scores, *full(scores))

    @pytest.mark.parametrize("which", [1, 2])
    @pytest.mark.parametrize("dtype", [torch.int32, torch.float32, torch.bool])
    def test_other_lengths(self, cython, which, dtype):
        given = [torch.zeros(2, 4, 8), *full(torch.zeros(2, 4, 8))]
        given[which] = given[which].to(dtype)
        name = ("text_lengths", "frame_lengths")[which - 1]
        with pytest.raises(TypeError, match=rf"'{name}' must have dtype torch\.int64, got {dtype}"):
            cython(*given)

    @pytest.mark.parametrize("which", range(3))
    def test_other_dimensions(self, cython, which):
        given = [torch.zeros(2, 4, 8), *full(torch.zeros(2, 4, 8))]
        name = ("scores", "text_lengths", "frame_lengths")[which]
        given[which] = given[which][0]
        with pytest.raises(ValueError, match=f"'{name}' must have"):
            cython(*given)

    @pytest.mark.parametrize("which", range(3))
    @pytest.mark.parametrize("wrong", [None, np.zeros((2, 4, 8), np.float32), [1.0]], ids=["None", "array", "list"])
    def test_what_is_no_tensor(self, cython, which, wrong):
        given = [torch.zeros(2, 4, 8), *full(torch.zeros(2, 4, 8))]
        given[which] = wrong
        with pytest.raises(TypeError):
            cython(*given)

    def test_without_memory(self, cython):
        scores = torch.zeros(2, 4, 8, device="meta")
        with pytest.raises(TypeError, match="'scores' must have memory, got a tensor on the meta device"):
            cython(scores, *full(torch.zeros(2, 4, 8)))


class TestInputs:
    def test_stay_as_they_are(self, cython):
        scores = torch.randn(3, 20, 50, requires_grad=True)
        lengths = ragged(3, 20, 50)
        before = [t.detach().clone() for t in (scores, *lengths)]
        mask = cython(scores, *lengths)
        assert not mask.requires_grad
        assert all(torch.equal(now, then) for now, then in zip((scores, *lengths), before, strict=True))
        assert {t._version for t in (scores, *lengths)} == {0}

    @pytest.mark.parametrize("size", [(0, 4, 8), (0, 0, 0), (2, 0, 8), (2, 4, 0)], ids=str)
    def test_may_be_empty(self, cython, size):
        lengths = torch.zeros(size[0], dtype=torch.int64)
        mask = cython(torch.zeros(size), lengths, lengths)
        assert mask.dtype == torch.int32
        assert mask.shape == size

    def test_may_have_empty_items(self, cython):
        scores = torch.randn(3, 20, 50)
        texts, frames = torch.tensor([20, 0, 7]), torch.tensor([50, 0, 7])
        masks = cython(scores, texts, frames)
        assert masks[1].count_nonzero() == 0
        for item in (0, 2):
            alone = cython(scores[item : item + 1], texts[item : item + 1], frames[item : item + 1])
            assert torch.equal(masks[item], alone[0])

    def test_may_be_one_item_for_all(self, cython):
        scores = torch.randn(1, 20, 50)
        masks = cython(scores.expand(4, -1, -1), *full(scores.expand(4, -1, -1)))
        assert torch.equal(masks, cython(scores, *full(scores)).expand(4, -1, -1))

    def test_of_one_call_do_not_disturb_those_of_another(self, ways, cython):
        """The search releases the GIL, so calls from several threads run concurrently."""
        scores = torch.randn(8, 8, 60, 200).unbind()
        lengths = ragged(8, 60, 200)
        expected = [ways.usual(s, *lengths) for s in scores]
        wrong = []

        def work(index):
            for _ in range(20):
                if not torch.equal(cython(scores[index], *lengths), expected[index]):
                    wrong.append(index)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(scores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


class TestOperator:
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_keeps_what_an_operator_promises(self, ways, layout):
        scores = LAYOUTS[layout](torch.randn(3, 20, 50))
        expected = ways.op(scores, *ragged(3, 20, 50))
        assert torch.equal(expected, ways.cython(scores, *ragged(3, 20, 50)))
        operator = torch.ops.interop_experiments.monotonic_alignment.default
        for same in (scores, scores.detach().requires_grad_()):
            result = torch.library.opcheck(operator, (same, *ragged(3, 20, 50)))
            assert set(result.values()) == {"SUCCESS"}

    @pytest.mark.parametrize("dynamic", [False, True])
    def test_is_part_of_a_compiled_graph(self, ways, dynamic):
        def durations(means, frames, *lengths):
            scores = -torch.cdist(means, frames).square()
            return ways.op(scores, *lengths).sum(2), scores.sum()

        torch._dynamo.reset()
        building.native(NAME, "search_cython")
        compiled = torch.compile(durations, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        for size in ((2, 10, 30), (3, 12, 40)):
            means, frames = torch.randn(*size[:2], 8, requires_grad=True), torch.randn(size[0], size[2], 8)
            got, total = compiled(means, frames, *ragged(*size))
            expected, _ = durations(means, frames, *ragged(*size))
            assert torch.equal(got, expected)
            (gradient,) = torch.autograd.grad(total, means)
            assert torch.isfinite(gradient).all()

    def test_one_compilation_for_all_sizes(self, ways):
        building.native(NAME, "search_cython")

        def durations(means, frames, *lengths):
            scores = means @ frames.mT  # torch.cdist itself is compiled again beyond 25 rows
            return ways.op(scores, *lengths).sum(2), scores

        def arguments(n):
            means, frames = torch.randn(n, n + 1, 8, requires_grad=True), torch.randn(n, 2 * n + 3, 8)
            return means, frames, *ragged(n, n + 1, 2 * n + 3)

        check_dynamic_shapes(durations, arguments)

    def test_refuses_another_device(self, ways):
        """Needs no such device: the same kernel serves the other devices, and it checks the device first."""
        building.native(NAME, "search_cython")
        for key in ("CUDA", "XPU", "MPS"):
            assert torch._C._dispatch_has_computed_kernel_for_dispatch_key(
                "interop_experiments::monotonic_alignment", key
            )

    def test_has_a_fake_result(self, ways):
        building.native(NAME, "search_cython")
        scores = torch.zeros(2, 4, 8, device="meta").mT.contiguous().mT
        mask = torch.ops.interop_experiments.monotonic_alignment(scores, *full(scores))
        assert (mask.shape, mask.dtype, mask.device.type) == (scores.shape, torch.int32, "meta")
        assert mask.is_contiguous()


class TestExperiment:
    def test_a_quick_run_writes_json_and_plot(self, ways, capsys, monkeypatch, tmp_path):
        monkeypatch.setattr(results, "BUILD", tmp_path)
        threads = torch.get_num_threads()
        driver.run(NAME, ["--quick"])
        assert torch.get_num_threads() == threads
        assert "All ways find the same path for each of 17 items." in capsys.readouterr().out
        assert (tmp_path / NAME / "result.svg").read_text().endswith("</svg>\n")
        (result,) = results.read(tmp_path / NAME).values()
        for by_threads in result["times"].values():
            for times in by_threads.values():
                assert list(times) == list(ways.WAYS)
                assert all(time["median"] > 0 for time in times.values())

    def test_all_threads_are_of_one_library(self, bare):
        """The usual core uses torch's OpenMP library, so that torch.set_num_threads applies to it.

        Runs in a process of its own, because packages that other tests import bring their own library.
        """
        code = f"""
import experiments
from experiments.harness import building
assert building.native({NAME!r}, "search_usual")
print(len(experiments.load({NAME!r}, "measure").openmp()))
"""
        assert bare(code, experiments.FOLDER.parent) == "1\n"

    @pytest.mark.parametrize("way", ["Cython", "PyTorch"])
    def test_the_comparison_finds_a_wrong_path(self, ways, monkeypatch, way):
        right = ways.SEARCHES[way]
        monkeypatch.setitem(ways.SEARCHES, way, lambda *given: right(*given).flip(2))
        cases = experiments.load(NAME, "cases")
        with pytest.raises(CommandError, match=f"{way} finds another path than the usual core for item 0 of small"):
            experiments.load(NAME, "measure").agreement(cases.Case("small", 2, 5, 9))
