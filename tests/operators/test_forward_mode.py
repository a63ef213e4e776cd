"""Forward mode and torch.func's transforms: functions written in Cython behave like the same ones in Python."""

import itertools

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

pytestmark = pytest.mark.native

OPS = torch.ops.interop_forward
FUNC = torch.func

reference_grows = pytest.mark.unchecked(
    by="leaks", reason="torch's Function keeps references to None in forward mode and in transforms"
)


@pytest.fixture(autouse=True)
def _loaded(forward):
    """Imports the module that registers the operators."""
    forward.seen.clear()


def draw(*shape):
    return torch.rand(shape, dtype=torch.float64) + 0.5


@pytest.mark.parametrize("name", ["loop_cube", "reduced_cube", "iterated_cube", "cube_of_composite"])
def test_an_operator_whose_kernel_is_a_loop(name):
    """The loop alone would lose a forward gradient; the operator's jvp has it."""
    operator, x = getattr(OPS, name), draw(4).requires_grad_()
    assert gradcheck(operator, x, check_forward_ad=True)
    assert gradgradcheck(operator, x)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(operator(forward_ad.make_dual(x.detach(), torch.ones_like(x)))).tangent
    expected = 3 * x.detach() ** 2
    assert torch.allclose(tangent, expected.sum() if name == "reduced_cube" else expected)


def test_a_loop_in_setup_context_is_rejected():
    """What it computes would be a constant in the second derivative."""
    x = draw(4).requires_grad_()
    with pytest.raises(RuntimeError, match="cube: input 0 requires grad, and what is computed here belongs to no gra"):
        OPS.cube_of_looping_setup(x)
    with torch.no_grad():
        assert torch.allclose(OPS.cube_of_looping_setup(x), x**3)


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.detach() ** 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] ** 2 * 3

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0] ** 2 * 3


class Square(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, p, y):
        return x * x * p * y, x.sign()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.p, y = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx, grad, _):
        x, y = ctx.saved_tensors
        return x * 2 * ctx.p * grad * y, None, x * x * ctx.p * grad

    @staticmethod
    def jvp(ctx, dx, _, dy):
        x, y = ctx.saved_tensors
        return (x * 2 * y * dx + x * x * dy) * ctx.p, torch.zeros_like(x)


class Wave(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a, b, s):
        return a.sin() * b * s

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.s = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return a.cos() * b * ctx.s * grad, a.sin() * ctx.s * grad, None

    @staticmethod
    def jvp(ctx, da, db, _):
        a, b = ctx.saved_tensors
        return (a.cos() * b * da + a.sin() * db) * ctx.s


def pairs(forward):
    """Functions of two tensors, and their equivalents in Python."""
    return {
        "cube": (lambda x, y: forward.cube(x) * y, lambda x, y: Cube.apply(x) * y),
        "square": (lambda x, y: forward.square(x, 2.5, y)[0], lambda x, y: Square.apply(x, 2.5, y)[0]),
        "wave": (lambda x, y: OPS.wave(x, y, 1.5), lambda x, y: Wave.apply(x, y, 1.5)),
    }


FORMULAS = {
    "cube": lambda x, y: x**3 * y,
    "square": lambda x, y: x * x * 2.5 * y,
    "wave": lambda x, y: x.sin() * y * 1.5,
}
"""The same of operators of torch. torch.autograd.Function loses outer tangents in forward mode over forward mode."""

NAMES = ["cube", "square", "wave"]
TRANSFORMS = {
    "jvp": lambda f, x, y: FUNC.jvp(f, (x, y), (x.cos(), y.sin())),
    "jvp of one": lambda f, x, y: FUNC.jvp(lambda t: f(t, y), (x,), (x.cos(),)),
    "jvp of jvp": lambda f, x, y: FUNC.jvp(
        lambda t: FUNC.jvp(lambda u: f(u, y * t), (t,), (t.cos(),))[1], (x,), (y.sin(),)
    ),
    "grad": lambda f, x, y: FUNC.grad(lambda a, b: f(a, b).sum(), argnums=(0, 1))(x, y),
    "grad of grad": lambda f, x, y: FUNC.grad(lambda t: FUNC.grad(lambda u: f(u, y * t).sum())(t).sum())(x),
    "vjp": lambda f, x, y: FUNC.vjp(f, x, y)[1](x.cos()),
    "jacrev": lambda f, x, y: FUNC.jacrev(f, argnums=(0, 1))(x, y),
    "jacfwd": lambda f, x, y: FUNC.jacfwd(f, argnums=(0, 1))(x, y),
    "hessian": lambda f, x, y: FUNC.hessian(lambda a, b: f(a, b).sum(), argnums=(0, 1))(x, y),
    "reverse over forward": lambda f, x, y: FUNC.jacrev(FUNC.jacfwd(f))(x, y),
    "forward over reverse": lambda f, x, y: FUNC.jacfwd(FUNC.jacrev(f, argnums=1))(x, y),
    "forward over forward": lambda f, x, y: FUNC.jacfwd(FUNC.jacfwd(f, argnums=1))(x, y),
    "forward, three times": lambda f, x, y: FUNC.jacfwd(FUNC.jacfwd(FUNC.jacfwd(lambda t: f(t, t * y))))(x),
    "forward over reverse over forward": lambda f, x, y: FUNC.jacfwd(FUNC.jacrev(FUNC.jacfwd(f, argnums=1)))(x, y),
    "reverse over reverse": lambda f, x, y: FUNC.jacrev(FUNC.jacrev(f, argnums=1))(x, y),
    "vmap": lambda f, x, y: FUNC.vmap(f)(x, y),
    "vmap of one": lambda f, x, y: FUNC.vmap(f, in_dims=(None, 0))(x, y),
    "vmap of grad": lambda f, x, y: FUNC.vmap(FUNC.grad(lambda a, b: f(a, b).sum(), argnums=(0, 1)))(x, y),
    "grad of vmap": lambda f, x, y: FUNC.grad(lambda a, b: FUNC.vmap(f, in_dims=(0, None))(a, b).sum(), (0, 1))(x, y),
    "jvp of vmap": lambda f, x, y: FUNC.jvp(FUNC.vmap(f), (x, y), (x.cos(), y.sin())),
    "vmap of vmap": lambda f, x, y: FUNC.vmap(FUNC.vmap(f, in_dims=(None, 0)), in_dims=(0, None))(x, y),
}


@reference_grows
class TestTransforms:
    @pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap calls an operator for each example
    @pytest.mark.parametrize(
        ("name", "transform"),
        # cube's forward reads memory, so there is no rule for vmap
        [(name, one) for name in NAMES for one in TRANSFORMS if name != "cube" or "vmap" not in one],
    )
    def test_as_in_python(self, forward, name, transform):
        x, y = draw(3), draw(3)
        mine, _ = pairs(forward)[name]
        expected = TRANSFORMS[transform](FORMULAS[name], x, y)
        torch.testing.assert_close(TRANSFORMS[transform](mine, x, y), expected, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("name", NAMES)
    def test_inside_of_a_graph(self, forward, name):
        """The graph outside a transform records the transform."""
        results = []
        for function in pairs(forward)[name]:
            torch.manual_seed(0)
            x, y = draw(3).requires_grad_(), draw(3).requires_grad_()
            _, tangent = FUNC.jvp(lambda t, f=function, y=y: f(t, y), (x,), (torch.ones_like(x),))
            results.append(torch.autograd.grad(tangent.sum(), (x, y)))
        torch.testing.assert_close(*results)


@reference_grows
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wanted", list(itertools.product([False, True], repeat=2)))
class TestDualTensors:
    @pytest.mark.parametrize("graph", [False, True])
    def test_as_in_python(self, forward, name, wanted, graph):
        results = []
        for function in pairs(forward)[name]:
            torch.manual_seed(0)
            inputs = [draw(2, 3).requires_grad_(graph) for _ in range(2)]
            tangents = [draw(2, 3).requires_grad_(graph) for _ in range(2)]
            with forward_ad.dual_level():
                given = [
                    forward_ad.make_dual(x, t) if w else x for x, t, w in zip(inputs, tangents, wanted, strict=True)
                ]
                value, tangent = forward_ad.unpack_dual(function(*given))
                assert (tangent is not None) == any(wanted)
                assert value.requires_grad == graph
                total = value.sum() + (tangent.pow(2).sum() if any(wanted) else 0)
                found = torch.autograd.grad(total, [*inputs, *tangents], allow_unused=True) if graph else ()
            results.append((value, tangent, *found))
        for mine, theirs in zip(*results, strict=True):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


class TestFunction:
    def test_without_the_one_in_python(self, forward):
        """`make leaks` sees here whether forward mode keeps anything: torch's own Function keeps references to None."""
        x = draw(3)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, x.cos())
            for function in (forward.cube, lambda x: OPS.wave(x, x, 1.5)):
                assert forward_ad.unpack_dual(function(dual)).tangent is not None

    @pytest.mark.unchecked(by="leaks", reason="the module keeps a list of what jvp was given")
    @pytest.mark.parametrize("name", NAMES)
    def test_numerically(self, forward, name):
        inputs = (draw(2, 3).requires_grad_(), draw(2, 3).requires_grad_())
        function = pairs(forward)[name][0]
        assert gradcheck(function, inputs, check_forward_ad=True)
        assert gradgradcheck(function, inputs, check_fwd_over_rev=True)

    def test_what_jvp_is_given(self, forward):
        """jvp gets materialized tangents of tensors, none of a number, and the state saved by forward."""
        forward.seen.clear()
        with forward_ad.dual_level():
            y, sign = forward.square(forward_ad.make_dual(draw(3), draw(3)), 2.0, draw(3))
            assert forward_ad.unpack_dual(y).tangent is not None
            assert forward_ad.unpack_dual(sign).tangent is None
        assert forward.seen == [(True, False, True, 2)]

    def test_without_a_tangent_jvp_is_not_called(self, forward):
        with forward_ad.dual_level():
            forward.square(draw(3), 2.0, draw(3).requires_grad_())
        forward.square(draw(3), 2.0, draw(3))
        assert forward.seen == []

    def test_when_tangents_are_switched_off(self, forward):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(draw(3), draw(3))
            with forward_ad._set_fwd_grad_enabled(False):
                y = forward.cube(x)
            assert forward_ad.unpack_dual(y).tangent is None

    @pytest.mark.parametrize("missing", [True, False])
    def test_lists(self, forward, missing):
        a, b, shift, tangent = draw(3), draw(3), draw(3), draw(3)
        forward.seen.clear()
        with forward_ad.dual_level():
            first, second = forward.shifted(
                [forward_ad.make_dual(a, tangent), b], None if missing else forward_ad.make_dual(shift, tangent)
            )
            tangents = [forward_ad.unpack_dual(one).tangent for one in (first, second)]
        assert torch.equal(first, a if missing else a + shift)
        assert torch.equal(tangents[0], tangent if missing else 2 * tangent)
        assert torch.equal(tangents[1], torch.zeros(3, dtype=torch.float64) if missing else tangent)
        assert forward.seen == [[True, False, not missing]]

    @reference_grows
    @pytest.mark.parametrize("missing", [True, False])
    def test_lists_in_transforms(self, forward, missing):
        x, shift = draw(3), None if missing else draw(3)

        def mine(t):
            return sum(forward.shifted([t, t * 2], shift)).sin()

        def theirs(t):
            return (t * 3 + (0 if missing else 2 * shift)).sin()

        for transform in (FUNC.jacfwd, FUNC.jacrev, lambda f: FUNC.hessian(lambda t: f(t).sum()), FUNC.vmap):
            torch.testing.assert_close(transform(mine)(x), transform(theirs)(x))

    def test_in_place(self, forward):
        x, tangent = draw(3), draw(3)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x.clone(), tangent.clone())
            version = dual._version
            y = forward.triple_(dual)
            assert y is dual
            assert y._version > version
            assert torch.equal(forward_ad.unpack_dual(y).primal, x * 3)
            assert torch.equal(forward_ad.unpack_dual(y).tangent, tangent * 3)

    @reference_grows
    def test_in_place_in_transforms(self, forward):
        x = draw(3)
        for transform in (FUNC.jacrev, FUNC.jacfwd):
            torch.testing.assert_close(transform(lambda t: forward.triple_(t.sin()))(x), torch.diag(x.cos() * 3))

    @reference_grows
    def test_the_graph_ends(self, forward):
        """State that jvp or a transform saves does not keep the results alive."""
        import gc
        import weakref

        x = draw(3).requires_grad_()
        with forward_ad.dual_level():
            y = forward.cube(forward_ad.make_dual(x, draw(3)))
        kept = [weakref.ref(y)]
        kept.append(weakref.ref(FUNC.grad(lambda t: forward.cube(t).sum())(x)))
        del y
        gc.collect()
        assert [one() for one in kept] == [None, None]

    @reference_grows
    def test_without_a_jvp(self, forward, gradients, operators):
        x = draw(3)
        message = "CubeWithoutJvp: an argument has a forward gradient, .* no forward-mode derivative; give it a jvp"
        with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=message):
            forward.without_jvp(forward_ad.make_dual(x, x))
        with pytest.raises(NotImplementedError, match=message):
            FUNC.jvp(forward.without_jvp, (x,), (x,))
        torch.testing.assert_close(FUNC.jacrev(forward.without_jvp)(x), FUNC.jacrev(Cube.apply)(x))

    def test_a_function_that_reads_memory_has_no_rule_for_vmap(self, forward):
        with pytest.raises(RuntimeError, match=r"Cannot access data pointer of Tensor that doesn't have storage"):
            FUNC.vmap(forward.cube)(draw(3))

    @reference_grows
    @pytest.mark.parametrize("transform", [False, True])
    def test_an_error_in_jvp(self, forward, transform):
        def with_dual_tensor(function, x, tangent):
            with forward_ad.dual_level():
                function(forward_ad.make_dual(*x, *tangent))

        x = (draw(3),)
        with pytest.raises(KeyError, match="a key"):
            (FUNC.jvp if transform else with_dual_tensor)(forward.raising, x, x)

    @pytest.mark.parametrize(
        ("what", "message"),
        [
            ("arguments", "New: there are 1 arguments, but jvp takes 3 tangents; it must take one for each argument"),
            ("outputs", "New: there are 1 output, but jvp returns the tangents of 2 outputs"),
            ("operator", r"register_autograd\(\"interop_forward::product\"\): there are 2 arguments, but jvp takes 1"),
        ],
    )
    def test_wrong_use(self, forward, what, message):
        with pytest.raises(TypeError, match=message):
            forward.refused(what)


class TestOperator:
    @pytest.mark.unchecked(by="leaks", reason="torch.compile keeps what it has compiled")
    def test_opcheck(self):
        torch.library.opcheck(OPS.wave.default, (draw(3).requires_grad_(), draw(3), 1.5))

    @pytest.mark.unchecked(by="leaks", reason="torch.library keeps some 80 bytes of each rule, of any operator")
    def test_a_rule_for_vmap(self):
        """torch's own register_vmap accepts an operator registered from Cython."""
        calls = []

        def rule(info, in_dims, a, b):
            calls.append((info.batch_size, in_dims))
            return torch.matmul(a.movedim(in_dims[0], 0), b), 0

        library = torch.library.Library("interop_forward", "FRAGMENT")
        torch.library.register_vmap("interop_forward::product", rule, lib=library)
        try:
            batch, b = draw(7, 3, 4), draw(4, 5)
            torch.testing.assert_close(FUNC.vmap(OPS.product, in_dims=(0, None))(batch, b), batch @ b)
            assert calls == [(7, (0, None))]
        finally:
            library._destroy()
