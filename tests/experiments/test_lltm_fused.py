"""The fused LLTM cell against the Python cell in float64, for any sizes, strides, dtypes and required gradients."""

import itertools
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from conftest import each_instruction_set
from hypothesis import example, given, settings
from hypothesis import strategies as st

import experiments
from experiments.harness import building
from interop.testing import check_dynamic_shapes

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.bfloat16: 0.03}
NAMES = ("x", "h", "c", "weight", "bias")
SMALL, LARGE = 3, 70  # the cell's own loop multiplies the small batch, ATen the large one


@pytest.fixture(scope="module")
def lltm():
    building.build("lltm")
    return SimpleNamespace(**{name: experiments.load("lltm", name) for name in ("ways", "agreement")})


@pytest.fixture(scope="module")
def call(lltm):
    """Calls the cell of a way with x, h, c, weight and bias."""
    classes = lltm.ways.classes()

    def call(way, x, h, c, weight, bias):
        cell = classes[way](1, 1)
        return torch.func.functional_call(cell, {"weight": weight, "bias": bias}, (x, h, c))

    return call


def arguments(batch, features, state, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, features), (batch, state), (batch, state), (3 * state, features + state), (3 * state,)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def evaluate(call, way, given_arguments, needed=(True,) * 5, weights=(True, True)):
    """h', c' and the gradients of their weighted sum, None for those not needed."""
    leaves = [a.detach().requires_grad_(need) for a, need in zip(given_arguments, needed, strict=True)]
    outputs = call(way, *leaves)
    total = 0
    for output, weighted in zip(outputs, weights, strict=True):
        if weighted:
            weight = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view(output.shape)
            total = total + (output.double() * weight).sum()
    if any(needed):
        total.backward()
    return [*(output.detach() for output in outputs), *(leaf.grad for leaf in leaves)]


def assert_as_python(call, given_arguments, **options):
    dtype = given_arguments[0].dtype
    got = evaluate(call, "Cython fused", given_arguments, **options)
    wanted = evaluate(call, "Python", [a.double() for a in given_arguments], **options)
    rounded = evaluate(call, "Python", given_arguments, **options)
    # These are sums of products. If the products cancel, only their rounding errors are left of a sum. So outputs are
    # compared relative to the largest output, and gradients relative to the largest gradient.
    largest = [
        max((t.abs().max().item() for t in some if t is not None and t.numel()), default=0)
        for some in (wanted[:2], wanted[2:])
    ]
    # If even the largest is such a rest, the error may be that of the Python cell in the same dtype.
    for name, a, b, python in zip(("h'", "c'", *(f"grad {n}" for n in NAMES)), got, wanted, rounded, strict=True):
        assert (a is None) == (b is None), name
        if a is None:
            continue
        assert a.dtype == dtype, name
        assert a.shape == b.shape, name
        if b.numel():
            scale = max(largest[name.startswith("grad")], 1e-3)
            error, allowed = ((t.double() - b).abs().max().item() / scale for t in (a, python))
            assert error <= max(allowed, TOLERANCE[dtype]), (name, error)


class TestAgreement:
    @settings(deadline=None, max_examples=60)
    @given(
        batch=st.sampled_from([0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65]),
        features=st.sampled_from([0, 1, 2, 5, 16, 33]),
        state=st.sampled_from([0, 1, 2, 3, 7, 8, 15, 16, 17, 33]),
        dtype=st.sampled_from(list(TOLERANCE)),
        seed=st.integers(0, 1000),
    )
    @example(batch=1, features=5, state=1, dtype=torch.bfloat16, seed=0)  # c' is a hundredth of its terms
    def test_any_size(self, call, batch, features, state, dtype, seed):
        assert_as_python(call, arguments(batch, features, state, dtype, seed))

    @pytest.mark.parametrize("batch", [SMALL, LARGE])
    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    @pytest.mark.parametrize("index", range(5), ids=NAMES)
    @pytest.mark.parametrize("layout", ["transposed", "every other column", "far rows", "one row again and again"])
    def test_any_strides(self, call, batch, dtype, index, layout):
        given_arguments = arguments(batch, 9, 18, dtype)
        t = given_arguments[index]
        if t.dim() == 1:
            t = torch.stack([t, t], 1)[:, 0]
        elif layout == "transposed":
            t = t.t().contiguous().t()
        elif layout == "every other column":
            t = torch.stack([t, t + 1], 2)[:, :, 0]
        elif layout == "far rows":
            t = torch.cat([t, t + 1], 1)[:, : t.size(1)]
        else:
            t = t[:1].expand(t.shape)
        given_arguments[index] = t
        call_keeping_strides = lambda way, *a: call(way, *(x if i != index else _like(x, t) for i, x in enumerate(a)))  # noqa: E731
        assert_as_python(call_keeping_strides, given_arguments)

    @pytest.mark.parametrize("batch", [SMALL, LARGE])
    @pytest.mark.parametrize("needed", list(itertools.product((False, True), repeat=5)), ids=str)
    def test_only_what_is_needed(self, call, batch, needed):
        assert_as_python(call, arguments(batch, 4, 5), needed=needed)

    @pytest.mark.parametrize("threads", [1, 2, 3])
    @pytest.mark.parametrize(
        "sizes", [(16, 128, 512), (31, 33, 401), (1, 700, 600), (63, 5, 130), (70, 5, 130), (301, 33, 130)]
    )
    def test_sizes_large_enough_for_several_threads(self, call, sizes, threads):
        """The parts that threads compute are all rows and products, also where they do not divide them evenly."""
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            assert_as_python(call, arguments(*sizes))
        finally:
            torch.set_num_threads(before)

    @pytest.mark.parametrize("weights", [(True, False), (False, True)])
    def test_one_result_alone(self, call, weights):
        assert_as_python(call, arguments(SMALL, 4, 5), weights=weights)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e30, -1e30])
    @pytest.mark.parametrize("index", [0, 1, 2, 4], ids=["x", "h", "c", "bias"])
    def test_values_out_of_range_give_what_python_gives(self, call, index, value):
        given_arguments = arguments(SMALL, 4, 5, torch.float32)
        given_arguments[index].view(-1)[1] = value
        got, wanted = (call(way, *given_arguments) for way in ("Cython fused", "Python"))
        torch.testing.assert_close(got, wanted, equal_nan=True)

    def test_gradients_that_come_in_without_strides(self, call):
        leaves = [a.requires_grad_() for a in arguments(SMALL, 4, 5)]
        wanted, got = (
            torch.autograd.grad(call(way, *leaves)[0].sum() + call(way, *leaves)[1].t().sum(), leaves)
            for way in ("Python", "Cython fused")
        )
        torch.testing.assert_close(got, wanted)

    def test_numerical_differences(self, call):
        leaves = [a.requires_grad_() for a in arguments(SMALL, 4, 5)]
        assert torch.autograd.gradcheck(lambda *a: call("Cython fused", *a), leaves)


def _like(values, layout):
    """The values with the strides of `layout`; differentiable."""
    if 0 in layout.stride():
        return values[:1].expand(values.shape)
    room = 1 + sum((n - 1) * s for n, s in zip(layout.shape, layout.stride(), strict=True))
    place = torch.as_strided(torch.arange(room), layout.shape, layout.stride())
    return torch.zeros(room, dtype=values.dtype).index_put((place,), values).as_strided(layout.shape, layout.stride())


CHECK = """
import torch
import experiments
ways, agreement = (experiments.load("lltm", name) for name in ("ways", "agreement"))
for dtype, tolerance in agreement.TOLERANCE.items():
    for batch in (1, 16, 17, 64, 70):
        cells, inputs = ways.same_cells(7, 19, dtype=dtype), agreement.inputs(batch, 7, 19, dtype)
        results = (agreement.evaluate(cells[way], inputs) for way in ("Cython fused", "Python"))
        for got, wanted in zip(*results):
            torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)
print(torch.backends.cpu.get_cpu_capability())
"""


@pytest.mark.usefixtures("lltm")
@each_instruction_set
@pytest.mark.long
def test_each_instruction_set(capability):
    docs = str(experiments.FOLDER.parent)
    environment = os.environ | {"ATEN_CPU_CAPABILITY": capability, "PYTHONPATH": docs}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("index", "value", "error", "message"),
        [
            (1, torch.zeros(3, 5, dtype=torch.int64), TypeError, "'h' must have dtype .* got torch.int64"),
            (0, torch.zeros(3, 4), TypeError, "'x' must have the dtype of h, torch.float64, got torch.float32"),
            (4, torch.zeros(15).half(), TypeError, "'bias' must have the dtype of h, torch.float64, got torch.float16"),
            (0, torch.zeros(3).double(), ValueError, r"'x' must have 2 dimensions, got 1 \(sizes \[3\]\)"),
            (4, torch.zeros(15, 1).double(), ValueError, r"'bias' must have 1 dimension, got 2"),
            (2, torch.zeros(1, 5).double(), ValueError, r"'c' must have sizes \[3, 5\], got \[1, 5\]"),
            (0, torch.zeros(2, 4).double(), ValueError, r"'x' must have sizes \[3, 4\], got \[2, 4\]"),
            (3, torch.zeros(15, 8).double(), ValueError, r"'weight' must have sizes \[15, 9\], got \[15, 8\]"),
            (4, torch.zeros(14).double(), ValueError, r"'bias' must have sizes \[15\], got \[14\]"),
            (2, torch.zeros(3, 5).double().to_sparse(), NotImplementedError, "lltm::fused.*SparseCPU"),
            (0, torch.zeros(3, 4, device="meta").double(), RuntimeError, "device meta"),
        ],
        ids=str,
    )
    def test_they_are_named(self, call, index, value, error, message):
        given_arguments = arguments(3, 4, 5)
        given_arguments[index] = value
        with pytest.raises(error, match=message):
            call("Cython fused", *given_arguments)

    @pytest.mark.parametrize("index", range(7), ids=["grad_h", "grad_c", "x", "h", "gates", "new_c", "weight"])
    @pytest.mark.parametrize("change", ["rows", "columns", "dtype", "dimensions"])
    def test_backward_checks_too(self, lltm, index, change):
        lltm.ways.classes()
        x, h, c, weight, bias = arguments(3, 4, 5)
        new_h, new_c, gates = torch.ops.lltm.fused(x, h, c, weight, bias)
        given_arguments = [new_h, new_c, x, h, gates, new_c, weight]
        t = given_arguments[index]
        given_arguments[index] = {
            "rows": t[1:],
            "columns": t[:, 1:],
            "dtype": t.float(),
            "dimensions": t[0],
        }[change]
        with pytest.raises((TypeError, ValueError), match=r"lltm::fused: argument '.*' must have"):
            torch.ops.lltm.fused_backward(*given_arguments, *(True,) * 4)

    @pytest.mark.parametrize("batch", [SMALL, LARGE])
    def test_backward_takes_any_strides(self, lltm, batch):
        lltm.ways.classes()
        x, h, c, weight, bias = arguments(batch, 4, 5)
        new_h, new_c, gates = torch.ops.lltm.fused(x, h, c, weight, bias)
        given_arguments = [new_h, new_c, x, h, gates, new_c, weight]
        wanted = torch.ops.lltm.fused_backward(*given_arguments, True, True, True, True)
        got = torch.ops.lltm.fused_backward(*(t.t().contiguous().t() for t in given_arguments), True, True, True, True)
        torch.testing.assert_close(got, wanted)


class TestOperators:
    @pytest.mark.parametrize("name", ["cell", "fused"])
    @pytest.mark.parametrize("batch", [SMALL, LARGE])
    def test_torch_finds_nothing_wrong(self, lltm, name, batch):
        lltm.ways.classes()
        leaves = [a.requires_grad_() for a in arguments(batch, 4, 5)]
        torch.library.opcheck(getattr(torch.ops.lltm, name).default, leaves)

    @pytest.mark.parametrize("name", ["cell", "fused"])
    def test_one_compilation_for_all_sizes(self, lltm, name):
        lltm.ways.classes()

        def leaves(n):
            return [a.requires_grad_() for a in arguments(n, n + 1, n + 2)]

        check_dynamic_shapes(getattr(torch.ops.lltm, name), leaves)

    def test_one_compilation_of_the_backward_alone(self, lltm):
        lltm.ways.classes()

        def given(n):
            x, h, c, weight, bias = arguments(n, n + 1, n + 2)
            new_h, new_c, gates = torch.ops.lltm.fused(x, h, c, weight, bias)
            return new_h, new_c, x, h, gates, new_c, weight, True, True, True, True

        check_dynamic_shapes(torch.ops.lltm.fused_backward, given)

    def test_torch_compile_takes_it_whole(self, lltm):
        lltm.ways.classes()
        leaves = [a.requires_grad_() for a in arguments(SMALL, 4, 5)]

        def function(*a):
            new_h, new_c, _ = torch.ops.lltm.fused(*a)
            return new_h.sin() + new_c

        results = []
        for f in (function, torch.compile(function, fullgraph=True, backend="aot_eager")):
            output = f(*leaves)
            results.append([output, *torch.autograd.grad(output.sum(), leaves)])
        torch.testing.assert_close(*results)

    @pytest.mark.parametrize("way", ["Cython op", "Cython fused"])
    def test_a_second_derivative_is_refused(self, call, way):
        leaves = [a.requires_grad_() for a in arguments(SMALL, 4, 5)]
        output = call(way, *leaves)[0].square().sum()

        def differentiate_twice():
            torch.autograd.grad(output, leaves[0], create_graph=True)[0].sum().backward()

        with pytest.raises(RuntimeError, match=r"has no second derivative|don't support automatic differentiation"):
            differentiate_twice()
