"""interop.register_fake: fake kernels of operators that Cython code defines."""

import pytest
import torch
import torch._dynamo

import interop

OPS = torch.ops.interop_test


@pytest.fixture(autouse=True)
def _loaded(operators):
    """The operators exist once their module is imported."""


def fake_places(x):
    return x.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.int64)


@pytest.fixture
def dynamic_results():
    """torch.compile breaks its graph at such results unless it is told not to."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        yield
    torch._dynamo.reset()


def test_a_size_that_depends_on_data(dynamic_results):
    assert interop.register_fake("interop_test::places", fake_places) is fake_places
    compiled = torch.compile(lambda x: OPS.places(x) * 2, backend="aot_eager", fullgraph=True)
    for x in (torch.eye(5)[2], torch.ones(5), torch.zeros(5)):
        torch.testing.assert_close(compiled(x), 2 * x.nonzero().view(-1))
    torch.library.opcheck(OPS.places.default, (torch.eye(5)[2],))


def test_the_second_one_counts(dynamic_results):
    """As when a module is loaded again after an edit."""
    calls = []

    @interop.register_fake("interop_test::places")
    def first(x):
        raise AssertionError("this one was replaced")

    @interop.register_fake("interop_test::places")
    def second(x):
        calls.append(x.shape)
        return fake_places(x)

    torch.compile(lambda x: OPS.places(x), backend="aot_eager", fullgraph=True)(torch.ones(3))
    assert calls


def test_what_cannot_have_one():
    with pytest.raises(ValueError, match="there is no operator 'interop_test::nowhere'"):
        interop.register_fake("interop_test::nowhere", fake_places)
    for name in ("places", "no_such_namespace::places", "interop_test::places.no_such_overload"):
        with pytest.raises(ValueError, match="there is no operator"):
            interop.register_fake(name, fake_places)
    with pytest.raises(TypeError, match="argument 'name' must be the str of an operator"):
        interop.register_fake(OPS.places, fake_places)
    with pytest.raises(TypeError, match="argument 'function' must be callable, got 5"):
        interop.register_fake("interop_test::places", 5)
    with pytest.raises(RuntimeError, match=r"already has .*Meta"):
        interop.register_fake("interop_test::scaled_mm", fake_places)
