"""Functions and operators with a gradient written in Cython do what torch.autograd.Function does in Python."""

import contextlib
import gc
import sys
import threading
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.native

OPS = torch.ops.interop_test


@pytest.fixture(autouse=True)
def _loaded(operators, failing):
    """The operators exist once their modules are imported."""


def draw(*shape, dtype=torch.float64):
    return (torch.rand(shape, dtype=dtype) + 0.5).requires_grad_()


class Exp(torch.autograd.Function):
    """gradients.exp in Python, for comparison."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class TestNumerically:
    @pytest.mark.parametrize("name", ["exp", "cube", "silu", "row"])
    def test_function(self, gradients, name):
        function = getattr(gradients, name)
        assert gradcheck(function, (draw(3, 4),))
        assert gradgradcheck(function, (draw(3, 4),)) if name != "row" else True

    @pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
    def test_several(self, gradients, wanted):
        inputs = [draw(3, 4).requires_grad_(wanted[0]), draw(4).requires_grad_(wanted[1])]

        def function(x, y):
            return gradients.power(x, 2.5, y, 3, True)

        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)
        gradients.asked.clear()

    def test_arguments_that_are_references(self, gradients):
        assert gradcheck(lambda x, y: gradients.product([x, y]), (draw(3), draw(3)))
        gradients.asked.clear()

    @pytest.mark.parametrize("shift", [True, False])
    def test_lists(self, gradients, shift):
        inputs = (draw(3), draw(3), *([draw(3)] if shift else []))
        assert gradcheck(lambda a, b, s=None: tuple(gradients.shifted([a, b], s)), inputs)

    def test_no_tensors_in_a_list(self, gradients):
        assert gradients.shifted([], draw(3)) == []

    def test_operators(self):
        assert gradcheck(OPS.scaled_mm, (draw(3, 4), draw(4, 2), 1.5))
        assert gradgradcheck(OPS.scaled_mm, (draw(3, 4), draw(4, 2), 1.5))
        assert gradcheck(lambda x: OPS.largest(x)[0], (draw(3, 4),))
        assert gradcheck(lambda a, b, w: OPS.weighted([a, b], w), (draw(3), draw(3), draw(3)))
        assert gradgradcheck(lambda a, b, w: OPS.weighted([a, b], w), (draw(3), draw(3), draw(3)))
        assert gradcheck(OPS.sine, (draw(3),))
        assert gradgradcheck(OPS.sine, (draw(3),))

    @pytest.mark.parametrize("both", [False, True])
    def test_a_result_that_may_be_missing(self, both):
        x = draw(3)
        first, second = OPS.maybe(x, both)
        assert (first is not None) == both
        (grad,) = torch.autograd.grad(second.sum(), x, retain_graph=True)
        assert torch.equal(grad, torch.full_like(x, 2.0))
        if both:
            assert torch.equal(torch.autograd.grad(first.sum(), x)[0], torch.full_like(x, 10.0))

    def test_an_argument_that_is_a_list_of_numbers(self):
        x = draw(3, 4)
        assert gradcheck(lambda t: OPS.total_of(t, [0, 1], True), (x,))
        assert OPS.total_of(x.detach(), [], False).shape == torch.sum(x.detach(), []).shape

    @given(st.lists(st.integers(0, 4), max_size=4), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
    @settings(deadline=None, max_examples=30)
    def test_as_in_python(self, gradients, shape, dtype):
        x = draw(*shape, dtype=dtype)
        mine, theirs = gradients.exp(x), Exp.apply(x)
        assert torch.equal(mine, theirs)
        (a,), (b,) = (torch.autograd.grad(y.sum(), x) for y in (mine, theirs))
        assert torch.equal(a, b)

    @given(
        st.lists(st.booleans(), min_size=2, max_size=2),
        st.sampled_from([1, 2]),
    )
    @settings(deadline=None, max_examples=20)
    def test_only_what_is_asked_for(self, gradients, requires, target):
        """A context says which gradients are requested: torch.autograd.grad may request fewer than inputs require."""
        x, y = draw(3).requires_grad_(requires[0]), draw(3).requires_grad_(requires[1])
        wanted = [t for t, flag in ((x, requires[0]), (y, requires[1])) if flag][:target]
        if not wanted:
            return
        gradients.asked.clear()
        a, b = gradients.power(x, 2.0, y, 1, True)
        torch.autograd.grad(a.sum() + b.sum(), wanted)
        asked_x, asked_y = any(t is x for t in wanted), any(t is y for t in wanted)
        assert gradients.asked == [(asked_x, False, asked_y, False, False)]


class TestGraph:
    def test_without_a_gradient_there_is_no_graph(self, gradients):
        assert gradients.exp(torch.ones(3)).grad_fn is None
        with torch.no_grad():
            assert not gradients.exp(draw(3)).requires_grad
        with torch.inference_mode():
            assert gradients.exp(draw(3)).is_inference()
        for op in (OPS.scaled_mm, OPS.sine):
            inputs = (torch.ones(3, 3), torch.ones(3, 3), 1.0) if op is OPS.scaled_mm else (torch.ones(3),)
            assert op(*inputs).grad_fn is None

    def test_forward_is_recorded_once(self, gradients):
        """The calls of forward record no graph of their own."""
        node = gradients.silu(draw(3)).grad_fn
        assert node.name() == "SiluBackward"
        assert [next_.name() for next_, _ in node.next_functions] == ["torch::autograd::AccumulateGrad"]
        node = OPS.scaled_mm(draw(2, 2), draw(2, 2), 1.0).grad_fn
        assert node.name() == "interop_test::scaled_mmBackward"
        assert len(node.next_functions) == 2

    def test_retain_graph(self, gradients):
        for function in (gradients.exp, OPS.sine):
            x = draw(3)
            y = function(x).sum()
            y.backward(retain_graph=True)
            once = x.grad.clone()
            y.backward()
            assert torch.equal(x.grad, 2 * once)
            with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
                y.backward()

    @pytest.mark.parametrize("name", ["exp", "cube"])
    def test_a_change_in_place_is_noticed(self, gradients, name):
        x = draw(3) * 1
        y = getattr(gradients, name)(x)
        with torch.no_grad():
            (y if name == "exp" else x).add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_hooks(self, gradients):
        x = draw(3)
        y = gradients.exp(x)
        seen = []
        y.register_hook(lambda grad: grad * 2)
        y.grad_fn.register_prehook(lambda grads: seen.append("pre"))
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append("post"))
        y.retain_grad()
        y.sum().backward()
        assert torch.allclose(x.grad, 2 * y.detach())
        assert seen == ["pre", "post"]
        assert torch.equal(y.grad, torch.full((3,), 2.0, dtype=torch.float64))

    def test_saved_tensors_hooks(self, gradients):
        packed, unpacked = [], []

        def pack(tensor):
            packed.append(tensor.shape)
            return tensor.detach().numpy().copy()

        def unpack(array):
            unpacked.append(array.shape)
            return torch.from_numpy(array)

        x = draw(3)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = gradients.cube(x)
        y.sum().backward()
        assert (packed, unpacked) == ([(3,)], [(3,)])
        assert torch.allclose(x.grad, 3 * x.detach() ** 2)

    def test_save_on_cpu(self, gradients):
        x = draw(3)
        with torch.autograd.graph.save_on_cpu():
            y = gradients.exp(x)
        y.sum().backward()
        assert torch.allclose(x.grad, x.detach().exp())

    def test_checkpoint(self, gradients):
        from torch.utils.checkpoint import checkpoint

        x = draw(3)
        checkpoint(lambda t: gradients.cube(gradients.exp(t)), x, use_reentrant=False).sum().backward()
        assert torch.allclose(x.grad, 3 * (3 * x.detach()).exp())

    @pytest.mark.unchecked(by="leaks", reason="torch's anomaly mode keeps something of each call")
    @pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in ExpBackward")
    def test_anomaly_mode(self, gradients):
        with torch.autograd.detect_anomaly():
            y = gradients.exp(torch.tensor([float("inf")], requires_grad=True)) * 0
            with pytest.raises(RuntimeError, match="Function 'ExpBackward' returned nan values in its 0th output"):
                y.sum().backward()

    def test_forward_mode_is_refused_without_a_jvp(self, gradients):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(3), torch.ones(3))
            with pytest.raises(NotImplementedError, match=r"Exp: an argument has a forward gradient, .* give it a jvp"):
                gradients.exp(dual)
            with pytest.raises(NotImplementedError, match=r"interop_test::sca.*: an argument has a forward gradient"):
                OPS.scaled_mm(forward_ad.make_dual(torch.ones(3, 3), torch.ones(3, 3)), torch.ones(3, 3), 1.0)

    @pytest.mark.unchecked(by="leaks", reason="torch's Function keeps references to None in transforms")
    def test_vmap_with_and_without_a_derivative(self, gradients):
        """Without one, vmap calls forward alone; a derivative below it, or around it, is not lost."""
        x = draw(4, 3)
        mapped = torch.func.vmap(gradients.exp)
        torch.testing.assert_close(mapped(x.detach()), x.detach().exp())
        (gradient,) = torch.autograd.grad(mapped(x).sum(), x)
        torch.testing.assert_close(gradient, x.detach().exp())
        torch.testing.assert_close(torch.func.grad(lambda t: mapped(t).sum())(x.detach()), x.detach().exp())
        assert not mapped(x.detach()).requires_grad
        with torch.no_grad():
            assert not mapped(x).requires_grad
        with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=r"Exp: .* give it a jvp"):
            mapped(forward_ad.make_dual(x.detach(), x.detach()))

    def test_forward_records_no_graph(self, gradients):
        """Or a tensor that forward uses without having it as an argument would get a graph beside the function's."""
        recorded = []

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                recorded.append(torch.is_grad_enabled())
                return function(*args, **(kwargs or {}))

        x = torch.ones(4, 3)
        for call in (gradients.exp, torch.func.vmap(gradients.exp), torch.func.vmap(torch.func.vmap(gradients.exp))):
            recorded.clear()
            with Watch():
                call(x)
            assert recorded
            assert not any(recorded)

    @pytest.mark.unchecked(by="leaks", reason="torch's Function keeps references to None in transforms")
    def test_vmap_in_place(self, gradients):
        mapped = torch.func.vmap(gradients.double_)
        torch.testing.assert_close(mapped(torch.ones(4, 3)), torch.full((4, 3), 2.0))
        with pytest.raises(RuntimeError, match="Some elements marked as dirty"):
            mapped(draw(4, 3) * 1)

    @pytest.mark.long
    @pytest.mark.unchecked(by="leaks", reason="torch.compile keeps what it has compiled")
    class TestCompiledAutograd:
        """torch.compile calls the backward of a function in a graph that it makes of the other nodes."""

        def gradients_of(self, function, *inputs, compiled):
            leaves = [one for one in inputs if isinstance(one, torch.Tensor) and one.requires_grad]
            with (
                torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", dynamic=True))
                if compiled
                else contextlib.nullcontext()
            ):
                return torch.autograd.grad(function(*inputs), leaves)

        def compare(self, function, *inputs):
            mine, expected = (self.gradients_of(function, *inputs, compiled=compiled) for compiled in (True, False))
            torch.testing.assert_close(mine, expected)

        def test_as_without_it(self, gradients):
            torch._dynamo.reset()
            for n in (3, 4, 5):
                self.compare(lambda x: gradients.cube(gradients.exp(x) * 2).sum(), draw(n))
                self.compare(lambda x: gradients.silu(x).sum(), draw(n))
                self.compare(lambda a, b: OPS.scaled_mm(a, b, 2.0).sin().sum(), draw(n, n), draw(n, 2))

        def test_the_state_is_that_of_the_node(self, gradients):
            torch._dynamo.reset()
            for p in (2.0, 3.0, 2.0):
                self.compare(
                    lambda x, y, p=p: sum(t.sum() for t in gradients.power(x, p, y, 2, True)), draw(3), draw(3)
                )
            gradients.asked.clear()

        @pytest.mark.parametrize("name", ["rows", "every"])
        def test_a_state_with_sizes(self, symbolic, name):
            """The sizes and numbers in a state are inputs of the graph, so other ones need no other graph."""
            operator = getattr(torch.ops.interop_symbolic, name)

            def arguments(n):
                x = torch.randn(n, n + 1, requires_grad=True)
                more = (torch.tensor(2.0, requires_grad=True), n - 2, 1, [1.5, float(n)], [True, False], "abc", 2)
                return (x, *more) if name == "every" else (x,)

            def graphs():
                found = torch._dynamo.utils.counters
                return found["compiled_autograd"]["captures"], found["stats"]["unique_graphs"]

            def sum_of(*inputs):
                return operator(*inputs).sin().sum()

            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            self.compare(sum_of, *arguments(5))
            first = graphs()
            assert first[0] == 1
            for n in (8, 13, 4, 21, 6, 34, 55, 7, 9):
                self.compare(sum_of, *arguments(n))
            assert graphs() == first

        def test_a_long_state(self, symbolic):
            """Two states that differ only at their ends, beyond the length of a key of compiled autograd."""
            torch._dynamo.reset()
            for last in (2.0, 3.0):
                self.compare(
                    lambda x, last=last: torch.ops.interop_symbolic.every(
                        x, torch.tensor(1.0), 2, None, [1.0] * 9000 + [last], [False] * 9001, "a", 1
                    ).sum(),
                    draw(3),
                )

        def test_gradients_that_are_not_there(self, gradients):
            torch._dynamo.reset()
            for n in (3, 4):
                self.compare(lambda x: gradients.parts(x)[0].sum(), draw(n))
                self.compare(lambda x: OPS.largest(x)[0].sum(), draw(n, n))
                self.compare(lambda x, y: gradients.power(x, 2.0, y, 2, True)[1].sum(), draw(n), draw(n).detach())
            gradients.asked.clear()

        def test_a_graph_that_is_gone(self, gradients):
            y = gradients.exp(draw(3)).sum()
            y.backward()
            with (
                torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")),
                pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"),
            ):
                y.backward()

        def test_a_state_that_cannot_be_compared(self, gradients):
            with (
                torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")),
                pytest.raises(NotImplementedError, match=r"cannot trace CountedBackward, whose ctx\.state is Counted"),
            ):
                gradients.counted(draw(3)).sum().backward()


class TestOutputs:
    def test_in_place(self, gradients):
        x = draw(3)
        y = x * 1
        version = y._version
        z = gradients.double_(y)
        assert z is y
        assert z.grad_fn.name() == "DoubleBackward"
        assert z._version > version
        z.sum().backward()
        assert torch.equal(x.grad, torch.full_like(x, 2.0))

    def test_in_place_leaves_no_cycle(self, gradients):
        before = sys.getrefcount(torch.Tensor)  # each Python tensor holds one reference
        for _ in range(100):
            gradients.double_(draw(3) * 1)
        gc.collect()
        assert sys.getrefcount(torch.Tensor) < before + 50

    def test_in_place_without_a_graph(self, gradients):
        x = torch.ones(3)
        version = x._version
        assert gradients.double_(x) is x
        assert x.sum() == 6
        assert x._version > version

    def test_in_place_on_a_leaf(self, gradients):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            gradients.double_(draw(3))

    def test_in_place_on_a_view(self, gradients):
        x = draw(2, 3)
        y = x * 1
        gradients.double_(y[0])
        y.sum().backward()
        assert torch.equal(x.grad, torch.tensor([[2.0] * 3, [1.0] * 3], dtype=torch.float64))

    @pytest.mark.unchecked(by="leaks", reason="the saved view owns the graph, with torch's own Function as well")
    @pytest.mark.parametrize("hooks", [contextlib.nullcontext, torch.autograd.graph.save_on_cpu])
    def test_a_saved_view_of_what_is_changed(self, gradients, hooks):
        x, w = draw(3).detach(), draw()
        expected = (x * w.detach().exp()).sum()
        with hooks():
            y = gradients.times_exp_(x, x[:], w)
        for _ in range(2):
            (y,) = torch.autograd.grad(y.sum(), w, create_graph=True)
            assert torch.allclose(y, expected)

    def test_an_input_is_returned(self, gradients):
        x = draw(3)
        y = gradients.same(x)
        assert y is not x
        y.sum().backward()
        assert torch.equal(x.grad, torch.full_like(x, 3.0))

    def test_a_view_is_returned(self, gradients):
        x = draw(2, 3)
        y = gradients.row(x)
        y.sum().backward()
        assert torch.equal(x.grad, torch.tensor([[1.0] * 3, [0.0] * 3], dtype=torch.float64))
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            gradients.row(draw(2, 3)).add_(1).sum().backward()

    @pytest.mark.parametrize("materialize", [True, False])
    def test_outputs_without_a_gradient(self, gradients, materialize):
        x = draw(5)
        gradients.asked.clear()
        double, sign, index, undefined = gradients.parts(x, materialize)
        assert [t.requires_grad for t in (double, sign, index)] == [True, False, False]
        assert undefined is None
        double.sum().backward()
        assert gradients.asked == [(True, materialize, materialize, False)]
        assert torch.equal(x.grad, torch.full_like(x, 2.0))

    def test_whole_numbers_of_an_operator(self):
        x = draw(3, 4)
        value, index = OPS.largest(x)
        assert value.requires_grad
        assert not index.requires_grad
        value.sum().backward()
        assert x.grad.sum() == 3


class TestLifetime:
    def test_nothing_keeps_the_graph(self, gradients):
        """A node keeps the output that it saves for backward. The output must not keep the node."""

        class Packed:
            pass

        for function in (gradients.exp, gradients.cube, OPS.sine):
            x = draw(3)
            before = sys.getrefcount(x)
            packed = []
            with torch.autograd.graph.saved_tensors_hooks(lambda t, p=packed: p.append(Packed()) or p[0], id):
                y = function(x)
            in_node, tensor = weakref.ref(packed.pop()), weakref.ref(y)
            assert in_node() is not None
            del y
            assert in_node() is None
            y = function(x)
            del y
            assert tensor() is None
            assert sys.getrefcount(x) == before

    def test_the_state_ends_with_the_node(self, gradients):
        before = gradients.counted_alive()
        x = draw(3)
        y = gradients.counted(x)
        assert gradients.counted_alive() == before + 1
        y.sum().backward()
        assert gradients.counted_alive() == before + 1
        del y
        assert gradients.counted_alive() == before
        gradients.counted(x.detach())  # without a graph the state ends with the call
        assert gradients.counted_alive() == before

    @pytest.mark.parametrize("view", [False, True])
    def test_a_node_that_keeps_what_it_changed_ends(self, gradients, view):
        """A node ends although it keeps a view that was changed in place, whose base leads to the node."""
        before = gradients.counted_alive()
        x = draw(3, 3)
        y = x * 1
        z = gradients.exp_(y[0] if view else y)
        assert gradients.counted_alive() == before + 1
        y.sum().backward()
        expected = torch.ones_like(x)
        expected[0 if view else slice(None)] = z.detach()
        assert torch.allclose(x.grad, expected)
        y = x * 1
        z = gradients.exp_(y[0] if view else y)  # without a backward pass, which would drop the saved tensors
        del y, z
        gc.collect()
        assert gradients.counted_alive() == before

    @pytest.mark.parametrize("view", [False, True])
    def test_a_node_ends_although_a_hook_raised(self, gradients, view):
        """Where torch's own Function keeps the node, what it changed and what it saved until the process ends."""

        def refuse(_):
            raise ValueError("not packed")

        before = gradients.counted_alive()
        y = draw(3, 3) * 1
        with torch.autograd.graph.saved_tensors_hooks(refuse, id), pytest.raises(ValueError, match="not packed"):
            gradients.exp_(y[0] if view else y)
        del y
        gc.collect()
        assert gradients.counted_alive() == before

    def test_results_in_a_list(self):
        x = draw(3)
        first, second = OPS.halves(x)
        assert torch.equal(first, x / 2)
        (first * 3 + second).sum().backward()
        assert torch.equal(x.grad, torch.full_like(x, 1))

    def test_what_a_context_says_in_forward(self, gradients):
        gradients.asked.clear()
        x = draw(3)
        for take in (False, True):
            y = gradients.asking(x, take)
            assert torch.equal(y, x * 2)
            assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.full_like(x, 2))
        assert torch.equal(gradients.asking(x.detach(), False), x * 2)
        assert gradients.asked == [(True, 1), (True, 1), (False, 0)]
        with pytest.raises(RuntimeError, match="nothing is kept when no input requires a gradient"):
            gradients.asking(x.detach(), True)
        gradients.asked.clear()

    def test_a_tensor_for_one_that_may_be_missing(self, gradients):
        x, shift = draw(2), draw(2)
        (y,) = gradients.shifted_by([x], shift)
        assert torch.equal(y, x + shift)
        y.sum().backward()
        assert shift.grad.tolist() == [1, 1]
        assert torch.equal(gradients.shifted_by([x], None)[0], x)

    def test_the_engine_may_be_called_in_backward(self, gradients):
        """backward may call the engine, also on a graph that leads through the same node."""
        x = draw(3)
        total = gradients.counted(x).sum()
        inner = []
        gradients.again.append(lambda: inner.append(torch.autograd.grad(total, x, retain_graph=True)[0]))
        total.backward()
        assert torch.equal(inner[0], x.grad)

    def test_backward_on_many_threads(self, gradients):
        x = draw(100)
        errors = []

        def work():
            try:
                for _ in range(50):
                    (grad,) = torch.autograd.grad(gradients.cube(gradients.exp(x)).sum(), x)
                    assert torch.allclose(grad, 3 * (3 * x.detach()).exp())
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []

    def test_one_graph_on_many_threads(self, gradients):
        x = draw(100)
        y = gradients.exp(x).sum()
        results = []
        threads = [
            threading.Thread(target=lambda: results.append(torch.autograd.grad(y, x, retain_graph=True)[0]))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 8
        assert all(torch.equal(grad, x.detach().exp()) for grad in results)


class TestErrors:
    @pytest.mark.parametrize(
        ("what", "kind", "message"),
        [
            (-1, RuntimeError, "self must be a matrix"),
            (0, KeyError, "'a key'"),
            (2, KeyboardInterrupt, "^$"),
            (4, MemoryError, "no memory"),
            (5, torch.OutOfMemoryError, "no memory on the device"),
            (6, StopIteration, "5"),
        ],
    )
    @pytest.mark.parametrize("thread", [False, True])
    def test_in_backward(self, what, kind, message, thread, capfd):
        """An error in backward keeps its class and message, also in a backward that another backward calls."""
        total = OPS.fail_backward(draw(3), what).sum()

        class Nested(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                total.backward()
                return grad

        root = Nested.apply(draw(1)) if thread else total
        with pytest.raises(kind, match=message) as raised:
            root.backward()
        assert raised.type is kind
        assert capfd.readouterr() == ("", "")

    def test_a_class_of_ones_own(self, failing):
        with pytest.raises(failing.Custom) as raised:
            OPS.fail_backward(draw(3), 1).sum().backward()
        assert (raised.value.args, raised.value.b) == (("custom", 7), 7)

    @pytest.mark.parametrize(
        ("what", "kind", "message"),
        [
            ("undefined", RuntimeError, "the function has no forward yet; call define"),
            ("defined twice", RuntimeError, r'Function.define\("Identity"\): it is defined already, as Identity'),
            ("gradients", TypeError, "New: forward takes 1 arguments, but backward returns 2 gradients"),
            ("gradients of results", TypeError, "New: forward returns 1 output, but backward takes .* of 2 outputs"),
            ("arguments", TypeError, "Identity: forward takes 1 arguments, got 2"),
            ("type", TypeError, "OfANumber: argument 2 of forward must be an int, got at.Tensor"),
            ("float for int", TypeError, "OfANumber: argument 2 of forward must be an int, got double"),
            ("object for int", TypeError, "OfANumber: argument 2 of forward must be an int, got a Python object"),
            ("mark_dirty", RuntimeError, "Marking.*mark_dirty was given a tensor that is not an input"),
            ("mark_dirty without a graph", RuntimeError, "Marking.*mark_dirty was given a tensor that is not an input"),
            ("saving twice", RuntimeError, "SavingTwice.*save_for_backward was called twice"),
            ("two states", TypeError, "this context has a state of the type double already"),
            (
                "two structs",
                TypeError,
                r"has a state of the type Small already, but the call requests one of vector\[at.Tensor\]",
            ),
            ("number for a struct", TypeError, "Structured: argument 2 of forward must be Small, got int64_t"),
            ("vector for a struct", TypeError, r"argument 2 of forward must be Small, got vector\[at.Tensor\]"),
            ("saved_tensor(-1)", IndexError, r"Negative.*saved_tensor\(-1\): forward has saved 0 tensors"),
            ("needs_input_grad(-1)", IndexError, r"Negative2.*needs_input_grad\(-1\): forward takes 1 arguments"),
            ("saved_tensor out of range", IndexError, r"OutOfRange.*saved_tensor\(3\): forward has saved 0 tensors"),
            (
                "gradient of a number",
                RuntimeError,
                "returned a gradient for argument 2 of forward, which is not a tensor",
            ),
        ],
    )
    def test_wrong_use(self, failing, what, kind, message):
        with pytest.raises(kind, match=message):
            failing.refused_function(draw(3), what).sum().backward()
