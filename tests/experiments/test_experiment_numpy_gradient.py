"""The experiment numpy-gradient: a function of SciPy as an autograd node, its gradients, and the mistakes."""

import importlib.metadata

import pytest
import torch

from experiments import load
from experiments.harness import building, driver
from interop.cli import CommandError

NAME = "numpy-gradient"

pytestmark = pytest.mark.slow
pytest.importorskip("scipy", reason="the gradients are computed by SciPy, which is not installed")


@pytest.fixture(scope="module")
def ways():
    """The experiment's module with the compiled forms of the function."""
    building.build(NAME)
    return load(NAME, "ways")


@pytest.fixture(scope="module")
def mistakes(ways):
    """The outcome and message of each version."""
    found = load(NAME, "mistakes").mistakes()
    return {text: (one["outcome"], one["message"]) for text, one in found.items()}


class TestGradients:
    def test_all_agree_with_torch_and_pass_both_checks(self, ways):
        found = ways.check()
        assert found.keys() == set(ways.WAYS)
        assert all(one["gradcheck"] and one["gradgradcheck"] for one in found.values())

    def test_the_check_finds_a_wrong_gradient(self, ways, monkeypatch):
        right = ways.functions()
        # The same values, but the gradient of `lower` has the other sign.
        turned = {ways.CYTHON: lambda lower, *rest: right[ways.CYTHON](2 * lower.detach() - lower, *rest)}
        monkeypatch.setattr(ways, "functions", lambda: right | turned)
        with pytest.raises(CommandError, match="Cython, SciPy differs from torch by"):
            ways.check()

    @pytest.mark.parametrize("name", ["by_scipy", "by_lapack"])
    def test_only_the_gradients_that_are_needed(self, ways, name):
        function = getattr(ways.native(), name)
        for index in range(4):
            given = [one.requires_grad_(i == index) for i, one in enumerate(map(torch.detach, ways.arguments(5)))]
            got = torch.autograd.grad(function(*given).square().sum(), given[index])
            expected = torch.autograd.grad(ways.reference()(*given).square().sum(), given[index])
            torch.testing.assert_close(got, expected)

    @pytest.mark.parametrize("name", ["by_scipy", "by_lapack", "once"])
    def test_arguments_stay_as_they_are(self, ways, name):
        given = ways.arguments(5)
        before = [one.detach().clone() for one in given]
        getattr(ways.native(), name)(*given).sum().backward()
        assert all(torch.equal(now, then) for now, then in zip(given, before, strict=True))

    @pytest.mark.parametrize("name", ["by_scipy", "by_lapack"])
    def test_wrong_arguments(self, ways, name):
        function = getattr(ways.native(), name)
        lower, diagonal, upper, b = ways.arguments(3)
        with pytest.raises(Exception, match="singular matrix") as caught:
            function(lower, diagonal * 0, upper, b)
        assert type(caught.value).__name__ == "LinAlgError"
        for given, error, message in (
            ([lower, diagonal, upper, b[:2]], ValueError, "got lower 2, diagonal 3, upper 2, b 2"),
            ([t[:0] for t in (lower, diagonal, upper, b)], ValueError, "as many elements as b"),
            ([lower.float(), diagonal, upper, b], TypeError, "'lower' must have dtype torch.float64"),
            ([t.to("meta") for t in (lower, diagonal, upper, b)], TypeError, "'lower' must have memory"),
            ([lower, diagonal, upper, b.view(3, 1)], ValueError, "'b' must have 1 dimension"),
            ([lower, diagonal, upper, [1.0]], TypeError, "expected Tensor, got list"),
        ):
            with pytest.raises(error, match=message):
                function(*given)


class TestMistakes:
    def test_without_a_function_there_is_no_graph(self, mistakes):
        assert mistakes["no Function, `.numpy()`"] == (
            "RuntimeError",
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        )
        assert mistakes["no Function, `.detach().numpy()`"] == (
            "RuntimeError",
            "element 0 of tensors does not require grad and does not have a grad_fn",
        )

    def test_second_derivatives(self, mistakes):
        assert mistakes["a Function, `.detach().numpy()`"] == ("right", "")
        assert mistakes["the same, differentiated twice"][0] == "wrong"
        assert mistakes["`.numpy()` in its backward, differentiated twice"][1].startswith("Can't call numpy()")
        assert mistakes["`@once_differentiable`, twice, by `backward()`"] == (
            "RuntimeError",
            "trying to differentiate twice a function that was marked with @once_differentiable",
        )
        assert mistakes["`@once_differentiable`, twice, by `torch.autograd.grad`"][0] == "wrong"

    def test_in_cython_they_are_refused_or_right(self, mistakes):
        kind, message = mistakes["Cython, SciPy in backward, differentiated twice"]
        assert kind == "RuntimeError"
        assert message.startswith("the gradient of SolveOnce is computed by SciPy and has none itself")
        assert mistakes["Cython, the node in backward, differentiated twice"] == ("right", "")

    def test_the_refusing_one_has_a_first_derivative(self, ways):
        given = ways.arguments(5)
        expected = torch.autograd.grad(ways.reference()(*given).square().sum(), given)
        torch.testing.assert_close(torch.autograd.grad(ways.native().once(*given).square().sum(), given), expected)


def test_without_scipy(monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(CommandError, match="needs scipy; run: pip install scipy"):
        driver.run(NAME, ["--quick"])
