"""`vjp=` and `op=` of `interop.with_arrays`: NumPy functions in autograd's graph and in compiled graphs."""

import collections
import dataclasses
import functools
import gc
import itertools
import weakref

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from interop import with_arrays
from interop.testing import check_dynamic_shapes

numbers = itertools.count()


def name():
    return f"test_with_arrays::f{next(numbers)}"


def numpy_solve(matrix: Tensor, b: Tensor) -> Tensor:
    assert type(matrix) is type(b) is np.ndarray
    return scipy.linalg.solve(matrix, b)


def solve_vjp(grad, x, matrix, b):
    by_b = solve(matrix.mT, grad)
    return -by_b[:, None] * x, by_b


solve = with_arrays(numpy_solve, vjp=solve_vjp)


@pytest.fixture
def system():
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(4, 4, dtype=torch.float64, generator=generator) + 5 * torch.eye(4, dtype=torch.float64)
    return matrix.requires_grad_(), torch.randn(4, dtype=torch.float64, generator=generator).requires_grad_()


UNSUPPORTED = r"^numpy_square cannot be called in torch\.func\.vmap or in forward mode \(jvp, "


@pytest.fixture
def square():
    def numpy_square(x):
        assert type(x) is np.ndarray
        return x**2

    return with_arrays(numpy_square, vjp=lambda grad, y, x: 2 * x * grad)


class TestVjp:
    @pytest.mark.parametrize("backward", [False, True])
    @pytest.mark.parametrize("several", [False, True])
    def test_results_are_freed_at_once(self, several, backward):
        """No cycle through the node keeps them until the next garbage collection, or for ever."""

        def both(x):
            return (x * 2, x + 1) if several else x * 2

        def vjp(grads, outputs, x):
            return 2 * grads[0] + grads[1] if several else 2 * grads

        results = with_arrays(both, vjp=vjp)(torch.ones(3, requires_grad=True))
        first = results[0] if several else results
        alive = weakref.ref(first)
        if backward:
            first.sum().backward()
        gc.disable()
        try:
            del first, results
            assert alive() is None
        finally:
            gc.enable()

    def test_first_and_second_derivatives(self, system):
        assert torch.allclose(solve(*system), torch.linalg.solve(*system))
        assert torch.autograd.gradcheck(solve, system)
        assert torch.autograd.gradgradcheck(solve, system)

    def test_without_grad_mode_there_is_no_graph(self, system):
        with torch.no_grad():
            assert not solve(*system).requires_grad
        assert not solve(*(one.detach() for one in system)).requires_grad
        assert solve(system[0].detach(), system[1]).requires_grad

    def test_transforms(self, system):
        matrix, b = (one.detach() for one in system)
        found = torch.func.grad(lambda b: solve(matrix, b).square().sum())(b)
        assert torch.allclose(found, torch.func.grad(lambda b: torch.linalg.solve(matrix, b).square().sum())(b))

    def test_jacrev(self, system, square):
        x = torch.tensor([1.0, 2.0])
        assert torch.equal(torch.func.jacrev(square)(x), torch.diag(2 * x))
        matrix, b = (one.detach() for one in system)
        with pytest.raises(RuntimeError, match=r"^numpy_solve cannot be called in torch\.func\.vmap"):
            torch.func.jacrev(lambda b: solve(matrix, b))(b)

    def test_a_gradient_by_numpy_refuses_a_second_one(self):
        def cube(x):
            return x**3

        def cube_vjp(grad, y, x):
            return with_arrays(np.multiply)(with_arrays(np.multiply)(grad, 3), x**2)

        x = torch.tensor([2.0], requires_grad=True)
        y = with_arrays(cube, vjp=cube_vjp)(x)
        (found,) = torch.autograd.grad(y, x, retain_graph=True)
        assert found == 12
        with pytest.raises(RuntimeError, match="of multiply requires grad"):
            torch.autograd.grad(y, x, create_graph=True)

    def test_several_results_and_other_arguments(self):
        def parts(x, scale, *, shift):
            return np.sin(x) * scale + shift, np.cos(x), x.astype(np.int64)

        def vjp(grads, outputs, x, scale):
            sin, cos, whole = grads
            assert whole is None or not whole.any()
            return sin * scale * x.cos() - cos * x.sin(), None

        x = torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)
        wrapped = with_arrays(parts, vjp=vjp)
        sin, cos, whole = wrapped(x, 3, shift=torch.ones(5))
        assert not whole.requires_grad
        expected = torch.autograd.grad((x.sin() * 3 + x.cos() * 2).sum(), x)
        assert torch.allclose(torch.autograd.grad((sin + cos * 2).sum(), x)[0], expected[0])
        assert torch.autograd.gradcheck(lambda x: wrapped(x, 3, shift=0)[:2], x)

    def test_a_number_becomes_a_tensor(self):
        norm = with_arrays(np.linalg.norm, vjp=lambda grad, n, x: grad * x / n)
        x = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
        y = norm(x)
        assert (y.shape, y.dtype) == ((), torch.float64)
        y.backward()
        assert torch.allclose(x.grad, torch.tensor([0.6, 0.8], dtype=torch.float64))
        assert isinstance(norm(x.detach()), Tensor)  # the type does not depend on requires_grad

    def test_an_argument_given_back(self):
        same = with_arrays(lambda x: x, vjp=lambda grad, y, x: grad)
        x = torch.ones(3, requires_grad=True)
        (same(x) * 2).sum().backward()
        assert torch.equal(x.grad, torch.full((3,), 2.0))

    def test_backward_finds_out_about_writes(self, system):
        matrix, b = system
        x = solve(matrix, b * 1)
        with torch.no_grad():
            matrix += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            x.sum().backward()

    def test_gradients_of_anything_else_are_refused(self):
        x = torch.ones(2, requires_grad=True)
        double = with_arrays(lambda x, *, y=None: x * 2, vjp=lambda grad, y, x: grad * 2)
        for args, kwargs in (((x,), {"y": x * 1}), (([x],), {})):
            with pytest.raises(TypeError, match="positional arguments only, got a tensor that requires grad"):
                double(*args, **kwargs)

    def test_wrong_results(self):
        x = torch.ones(2, requires_grad=True)

        def bad(grad, y, *args):
            return returned

        wrapped = with_arrays(lambda x, y: x * y, vjp=bad)
        returned = (x,)
        with pytest.raises(ValueError, match=r"bad, given as vjp=, must return .* each of the 2 .*, got 1"):
            wrapped(x, 2).sum().backward()
        returned = (np.ones(2), None)
        with pytest.raises(TypeError, match="must return tensors or None, got ndarray for argument 0"):
            wrapped(x, 2).sum().backward()
        with pytest.raises(
            TypeError, match="'vjp' is for functions that return an array or a tuple of arrays, got dict"
        ):
            with_arrays(lambda x: {"x": x}, vjp=bad)(x)

    @pytest.mark.parametrize("requires_grad", [True, False])
    def test_forward_mode_is_rejected(self, square, requires_grad):
        with torch.autograd.forward_ad.dual_level():
            x = torch.ones(2, requires_grad=requires_grad)
            with pytest.raises(RuntimeError, match=UNSUPPORTED):
                square(torch.autograd.forward_ad.make_dual(x, torch.ones(2)))

    @pytest.mark.parametrize(
        "transform",
        [
            torch.vmap,
            torch.func.jacfwd,
            torch.func.hessian,
            lambda f: lambda x: torch.func.jvp(f, (x,), (x,)),
            lambda f: torch.vmap(torch.func.grad(lambda x: f(x).sum())),
        ],
        ids=["vmap", "jacfwd", "hessian", "jvp", "vmap of grad"],
    )
    @pytest.mark.parametrize("requires_grad", [True, False])
    def test_other_transforms_are_rejected(self, square, transform, requires_grad):
        with pytest.raises(RuntimeError, match=UNSUPPORTED):
            transform(square)(torch.ones(2, 3, requires_grad=requires_grad))

    def test_a_call_without_grad_mode_in_a_transform(self, square):
        @torch.no_grad()
        def constant(x):
            return square(x)

        x = torch.tensor([3.0])
        found = torch.func.grad(lambda x: (x * constant(x)).sum())(x)
        assert found == 9


@pytest.mark.long
class TestOp:
    def test_it_is_one_node_of_a_graph(self, system):
        def vjp(grad, x, matrix, b):  # calls operators, too: otherwise its graph would contain other code
            by_b = op(matrix.mT, grad)
            return -by_b[:, None] * x, by_b

        op = with_arrays(numpy_solve, op=name(), fake=lambda matrix, b: torch.empty_like(b), vjp=vjp)
        matrix, b = (one.detach() for one in system)
        torch.library.opcheck(op, (matrix, b))
        torch.library.opcheck(op, system)
        counter = CompileCounter()
        model = torch.compile(lambda matrix, b: op(matrix, b.sin()).cos(), fullgraph=True, backend=counter)
        assert torch.allclose(model(matrix, b), torch.linalg.solve(matrix, b.sin()).cos())
        assert (counter.frame_count, counter.op_count) == (1, 3)
        assert torch.autograd.gradcheck(op, system)
        assert torch.autograd.gradgradcheck(op, system)

    def test_one_compilation_for_all_sizes(self):
        def running(x: Tensor) -> Tensor:
            return np.cumsum(x)

        def vjp(grad, result, x):
            return grad.flip(0).cumsum(0).flip(0)

        op = with_arrays(running, op=name(), fake=torch.empty_like, vjp=vjp)
        check_dynamic_shapes(op, lambda n: (torch.randn(n, requires_grad=True),))

    def test_a_schema_for_what_has_no_annotations(self):
        op = with_arrays(np.trapezoid, op=f"{name()}(Tensor y, Tensor x) -> float", fake=lambda y, x: 0.0)
        x = torch.linspace(0, 1, 50)
        assert op(x**2, x) == pytest.approx(1 / 3, abs=1e-3)
        assert type(op(x, x)) is float

    def test_lists_and_writes(self):
        def fill(out: Tensor, values: list[Tensor]) -> None:
            np.add(values[0], values[1], out=out)

        op = with_arrays(fill, op=name(), mutates_args=("out",), fake=lambda out, values: None)
        out = torch.zeros(3)
        op(out, [torch.ones(3), torch.ones(3)])
        assert torch.equal(out, torch.full((3,), 2.0))
        assert out._version > 0
        torch.library.opcheck(op, (out, [torch.ones(3), torch.ones(3)]))

    def test_as_a_decorator(self):
        @with_arrays(op=name())
        def double(x: Tensor, times: int) -> Tensor:
            return x * times

        assert torch.equal(double(torch.ones(2), 3), torch.full((2,), 3.0))
        double.register_fake(lambda x, times: torch.empty_like(x))
        torch.library.opcheck(double, (torch.ones(2), 3))

    def test_what_is_wrong(self):
        with pytest.raises(ValueError, match="annotation"):
            with_arrays(lambda x: x, op=name())
        with pytest.raises(TypeError, match="'mutates_args' of an operator must contain only names"):
            with_arrays(numpy_solve, op=name(), mutates_args=(0,))
        op = with_arrays(functools.partial(np.multiply, 2).__call__, op=f"{name()}(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match=r"does not require grad|autograd"):
            op(torch.ones(2, requires_grad=True)).sum().backward()


class TestMoreThanPositions:
    def test_keywords_reach_the_vjp(self):
        f = with_arrays(
            lambda x, a=1.0, scale=2.0: x * a * scale,
            vjp=lambda g, out, x, a, scale: (g * a * scale, None, None),
        )
        x = torch.ones(3, requires_grad=True)
        f(x, scale=3.0).sum().backward()
        assert x.grad.tolist() == [3.0] * 3

    def test_an_operator_has_none_without_a_position(self):
        def keyword_only(x: Tensor, *, scale: float) -> Tensor:
            return x * scale

        with pytest.raises(TypeError, match="needs positional parameters, but scale is keyword-only"):
            with_arrays(keyword_only, op=name(), vjp=lambda g, out, x: g)

    def test_a_tensor_given_twice(self):
        f = with_arrays(lambda x, w: x * w, vjp=lambda g, out, x, w: (g * w, g * x))
        x = torch.full((2,), 5.0, requires_grad=True)
        f(x, w=x).sum().backward()
        assert x.grad.tolist() == [10.0, 10.0]

    def test_a_tensor_in_a_list_that_has_changed(self):
        f = with_arrays(lambda x, ws: x * ws[0], vjp=lambda g, out, x, ws: (g * ws[0], None))
        x, w = torch.ones(2, requires_grad=True), torch.full((2,), 2.0)
        y = f(x, [w])
        w.fill_(100)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_a_result_has_memory_of_its_own(self):
        x = torch.ones(3, requires_grad=True)
        a = x * 1
        y = with_arrays(lambda x: x, vjp=lambda g, out, x: g)(a)
        y.mul_(10)
        assert a.tolist() == [1.0] * 3
        a.sum().backward()
        assert x.grad.tolist() == [1.0] * 3

    def test_a_named_tuple_keeps_its_names(self):
        Pair = collections.namedtuple("Pair", ["one", "other"])
        f = with_arrays(lambda x: Pair(x * 2, x * 3), vjp=lambda grads, outs, x: 2 * grads[0] + 3 * grads[1])
        x = torch.ones(2, requires_grad=True)
        for given in (x, x.detach()):
            assert f(given).other.tolist() == [3.0, 3.0]
        (f(x).one + f(x).other).sum().backward()
        assert x.grad.tolist() == [5.0, 5.0]

    def test_no_result_shares_memory_with_any_argument(self):
        """Arguments in lists and keywords count as well, and so do parts of arguments."""
        x, out, listed = torch.ones(2, requires_grad=True), torch.zeros(2), torch.zeros(2)

        def into(x, *, out):
            np.multiply(x, 2, out=out)
            return out

        y = with_arrays(into, vjp=lambda g, o, x: 2 * g)(x, out=out)
        assert y.requires_grad
        assert not out.requires_grad
        plain = np.zeros(2)  # an array of the caller's
        f = with_arrays(into, vjp=lambda g, o, x: 2 * g)
        for given in (x, x.detach()):
            first = f(given, out=plain)
            f(given + 1, out=plain)
            assert first.tolist() == [2, 2]
        with_arrays(lambda x, several: several[0], vjp=lambda g, o, x, several: (g, None))(x, [listed])
        assert not listed.requires_grad
        long = torch.arange(3.0, requires_grad=True)
        part = with_arrays(
            lambda x: np.lib.stride_tricks.as_strided(x[1:], (2,), x.strides), vjp=lambda g, o, x: torch.cat([g[:1], g])
        )(long)
        with torch.no_grad():
            part.add_(100)
        assert long.tolist() == [0, 1, 2]

    def test_tensors_in_a_list_that_is_returned_have_no_gradient_in_silence(self):
        f = with_arrays(lambda x: (x * 2, [x * 3]), vjp=lambda g, o, x: g[0])
        with pytest.raises(TypeError, match="a tuple with arrays in a container"):
            f(torch.ones(1, requires_grad=True))

    def test_a_list_of_an_operator_may_have_gradients(self):
        def total(x: Tensor, several: list[Tensor]) -> Tensor:
            return x + several[0] * several[1]

        for gradient in (lambda g, o, x, s: (g, [g * s[1], g * s[0]]), lambda g, o, x, s: (g, None)):
            f = with_arrays(total, op=name(), vjp=gradient, fake=lambda x, several: torch.empty_like(x))
            x, a, b = (torch.full((2,), float(n), requires_grad=True) for n in (1, 2, 3))
            f(x, [a, b]).sum().backward()
            assert x.grad.tolist() == [1, 1]
            assert [one.grad is None or one.grad.tolist() for one in (a, b)] in ([[3, 3], [2, 2]], [True, True])

    def test_an_operator_that_returns_a_part_of_an_argument(self):
        f = with_arrays(lambda x: x[1:], op=f"{name()}(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match=r"memory of their own|alias"):
            f(torch.ones(3))


class TestWithoutAGradient:
    """The same aliasing whether or not autograd records the call."""

    @pytest.mark.parametrize(
        "function", [lambda x, a: x, lambda x, a: (x[:1], a), lambda x, a: a[1:], lambda x, a: [x, a]]
    )
    def test_results_have_memory_of_their_own(self, function):
        made = with_arrays(function, vjp=lambda grad, output, x, a: (None, None))
        is_list = isinstance(function(torch.ones(2), np.ones(2)), list)  # which has no gradient
        for x in (torch.ones(2), *([] if is_list else [torch.ones(2, requires_grad=True)])):
            array = np.ones(2)
            found = made(x, array)
            for one in found if isinstance(found, (tuple, list)) else [found]:
                with torch.no_grad():
                    one.fill_(7)
            assert x.tolist() == array.tolist() == [1, 1]

    def test_a_named_tuple(self):
        kind = collections.namedtuple("kind", "a b")
        found = with_arrays(lambda x: kind(x, 1), vjp=lambda grad, output, x: grad)(x := torch.ones(2))
        assert type(found) is kind
        assert found.a is not x


def test_a_list_that_is_changed_after_the_call():
    made = with_arrays(lambda x, many: x * many[0]["a"], vjp=lambda grad, output, x, many: (grad * many[0]["a"], None))
    x, many = torch.ones(2, requires_grad=True), [{"a": torch.full((2,), 3.0)}]
    y = made(x, many)
    many[0]["a"] = torch.zeros(2)
    many.clear()
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_numbers_of_an_operator_are_tensors_without_dimensions():
    made = with_arrays(lambda x: x.sum(), op="interop_numbers::total(Tensor x) -> Tensor")
    assert made(torch.ones(3)).shape == ()
    several = with_arrays(
        lambda x: (x.max(), x.argmax(), x * 2), op="interop_numbers::several(Tensor x) -> (Tensor, int, Tensor)"
    )
    most, where, doubled = several(torch.tensor([1.0, 3.0]))
    assert (most.item(), where, doubled.tolist()) == (3, 1, [2, 6])


def test_an_operator_returns_all_its_results():
    three = torch.arange(3.0)
    nonzero = with_arrays(lambda x: np.nonzero(x), op="interop_numbers::nonzero(Tensor x) -> Tensor[]")
    assert [one.tolist() for one in nonzero(torch.eye(2))] == [[0, 1], [0, 1]]
    sums = with_arrays(lambda x: [x.sum(), x.max()], op="interop_numbers::sums(Tensor x) -> Tensor[]")
    assert [one.item() for one in sums(three)] == [3, 2]
    shape = with_arrays(lambda x: (*x.shape, 3), op="interop_numbers::shape(Tensor x) -> int[]")
    assert shape(three) == [3, 3]
    pair = with_arrays(lambda x: [x.sum(), x.shape[0]], op="interop_numbers::pair(Tensor x) -> (Tensor, int)")
    assert tuple(pair(three)) == (3, 3)
    overlapping = with_arrays(
        lambda x: [np.ones(3)[:2], *(y := np.ones(3), y[1:], y)],
        op="interop_numbers::overlapping(Tensor x) -> Tensor[]",
    )
    assert [one.shape[0] for one in overlapping(three)] == [2, 3, 2, 3]
    perhaps = with_arrays(lambda x: x.sum(), op="interop_numbers::perhaps(Tensor x) -> Tensor?")
    assert perhaps(three).item() == 3
    nothing = with_arrays(lambda x: None, op="interop_numbers::nothing(Tensor x) -> ()")
    assert nothing(three) is None
    many = with_arrays(lambda x: (x * 1, x * 2, x * 3), op="interop_numbers::many(Tensor x) -> (Tensor, Tensor)")
    with pytest.raises(ValueError, match="many must return 2 values, as its schema says, got 3 values"):
        many(three)


def test_results_and_arguments_of_other_kinds():
    """Results that are no strided tensors, and arguments that compare by identity."""

    class Settings:
        factor = 3

    @dataclasses.dataclass(eq=False)
    class Options:
        factor: int = 3

    settings, options, seen = Settings(), Options(), {}
    seen[settings] = seen[options] = 2
    made = with_arrays(
        lambda x, one, other: x * 3,
        vjp=lambda grad, output, x, one, other: (grad * seen[one] * seen[other], None, None),
    )
    x = torch.ones(2, requires_grad=True)
    made(x, settings, options).sum().backward()
    assert x.grad.tolist() == [4, 4]
    sparse = with_arrays(lambda x: torch.eye(2).to_sparse(), vjp=lambda grad, output, x: grad)
    assert sparse(torch.ones(2)).layout == torch.sparse_coo
    size = with_arrays(lambda x: torch.Size(x.shape), vjp=lambda grad, output, x: grad)
    assert size(torch.ones(2)) == size(torch.ones(2, requires_grad=True)) == torch.Size([2])


def test_torch_itself_gives_operators_no_forward_mode():
    """A guide says what an operator of torch.library does. When this fails, the sentence can go."""
    plain = torch.library.custom_op(
        "interop_forward::plain", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    plain.register_autograd(lambda ctx, grad: grad * 2)
    ours = with_arrays(
        lambda x: x * 2, op="interop_forward::ours(Tensor x) -> Tensor", vjp=lambda grad, output, x: grad * 2
    )
    for one in (plain, ours):
        assert torch.func.jvp(one, (torch.ones(2),), (torch.ones(2),))[1].tolist() == [0, 0]
        with pytest.raises(RuntimeError, match="setup_context"):
            torch.func.grad(lambda x, one=one: one(x).sum())(torch.ones(2))
