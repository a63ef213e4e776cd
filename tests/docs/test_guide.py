"""Every block of Cython in the guides compiles and runs. The blocks of a guide form one module."""

import contextlib
import re
import warnings

import pytest
import torch
from conftest import BUILD, TESTS, build_projects, import_from, write_whole
from torch import distributed
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

from interop.testing import check_dynamic_shapes

DOCS = TESTS.parent / "docs"
GUIDES = ("operators-guide", "kernels-guide", "cimport-guide", "cuda-streams-guide")
DEFINITION = re.compile(r"@|ctypedef |cdef struct |from |cdef class |def |cdef .*\($|cdef .*\).*:$", re.MULTILINE)
BLOCK = re.compile(r"(?:<!-- (?P<note>.*?) -->\n)?```cython\n(?P<code>.*?)```", re.DOTALL)


def blocks(page):
    """The notes and texts of all blocks, the prelude first."""
    return [(block["note"] or "", block["code"]) for block in BLOCK.finditer((DOCS / f"{page}.md").read_text())]


def pyx(page):
    """The source of a guide's module. Blocks of statements become functions: statements_0 and so on."""
    (_, prelude), *others = blocks(page)
    imports, _, variables = prelude.partition("\n\n")
    parts = [imports, *(code for note, code in others if not note and DEFINITION.match(code))]
    for i, code in enumerate(statements(page)):
        body = "".join(f"    {line}\n" for line in (variables + code).splitlines())
        parts.append(f"def statements_{i}(torch.Tensor x not None, torch.Tensor y not None):\n{body}")
    parts.append("def call(name, *arguments): return globals()[name](*arguments)\n")
    parts += WRAPPERS.get(page, ())
    return "\n\n".join(parts)


def statements(page):
    """The blocks of statements after the prelude."""
    return [code for note, code in blocks(page)[1:] if not note and not DEFINITION.match(code)]


WRAPPERS = {  # for functions that Python cannot call
    "kernels-guide": [
        f"def call_{name}({', '.join(f'torch.Tensor {a} not None' for a in arguments)}):\n"
        f"    return torch.wrap({name}({', '.join(f'{a}.cdata' for a in arguments)}))\n"
        for name, arguments in (("swish", "xy"), ("swish_backward", "gxy"), ("hypotenuse", "xy"))
    ],
    "cuda-streams-guide": [
        "def call_doubled(torch.Tensor x not None): return torch.wrap(doubled(x.cdata))\n",
        "def call_on_the_device_of(torch.Tensor x not None): on_the_device_of(x.cdata)\n",
    ],
}
SETUP = """\
from setuptools import setup

from interop.build import BuildExtension, Extension

module = Extension("{name}", ["{name}.pyx"], extra_compile_args=["-O0"])
setup(name="{name}", ext_modules=[module], cmdclass={{"build_ext": BuildExtension}})
"""


@pytest.fixture(scope="module")
def modules():
    """The compiled modules of the guides by page, all built together."""
    names = {page: page.replace("-", "_") for page in GUIDES}
    for page, name in names.items():
        folder = BUILD / "guides" / name
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{name}.pyx", pyx(page))
        write_whole(folder / "setup.py", SETUP.format(name=name))
    build_projects([BUILD / "guides" / name for name in names.values()], BUILD / "guide-site")
    return {page: import_from(BUILD / "guide-site", name) for page, name in names.items()}


@pytest.fixture(scope="module")
def guide(modules):
    return modules["cimport-guide"]


@pytest.fixture(scope="module")
def operators_guide(modules):
    return modules["operators-guide"]


@pytest.fixture(scope="module")
def kernels_guide(modules):
    return modules["kernels-guide"]


@pytest.fixture(scope="module")
def streams_guide(modules):
    return modules["cuda-streams-guide"]


def test_there_are_blocks():
    assert len(statements("cimport-guide")) >= 6
    assert [note for note, _ in blocks("cimport-guide") if note.startswith("not run")] == [
        "not run: there is no mine.h"
    ]
    assert len(statements("kernels-guide")) == 2
    assert len(blocks("kernels-guide")) >= 10


@pytest.mark.parametrize("index", range(len(statements("cimport-guide"))))
def test_statements(guide, index):
    emits = ".emit()" in statements("cimport-guide")[index]
    warns = pytest.warns(UserWarning, match="was resized") if emits else contextlib.nullcontext()
    with torch.random.fork_rng(), warns:
        guide.call(f"statements_{index}", torch.randn(2, 3), torch.randn(2, 3))


def test_functions(guide):
    x, w = torch.randn(2, 3), torch.randn(4, 3)
    assert guide.Cell(w).forward(x).equal(torch.nn.functional.linear(x, w))
    expected = x * 2
    assert guide.scale(x, 2.0) is x
    assert x.equal(expected)
    z = guide.like(x, torch.float64, torch.device("cpu"))
    assert (z.shape, z.dtype) == (x.shape, torch.float64)


@pytest.mark.parametrize("index", range(len(statements("kernels-guide"))))
def test_statements_about_kernels(kernels_guide, index):
    kernels_guide.call(f"statements_{index}", torch.randn(2, 3), torch.randn(2, 3))


def test_kernels(kernels_guide):
    x, y = torch.randn(2, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    leaf = x.clone().requires_grad_()
    swish = leaf * torch.sigmoid(y * leaf)
    torch.testing.assert_close(kernels_guide.call_swish(x, y), swish.detach())
    g = torch.randn_like(x)
    torch.testing.assert_close(kernels_guide.call_swish_backward(g, x, y), torch.autograd.grad(swish, leaf, g)[0])
    torch.testing.assert_close(kernels_guide.call_hypotenuse(x, y), torch.hypot(x, y.expand(2, 3)))
    torch.testing.assert_close(kernels_guide.axpy(2.0, x, y), 2 * x + y)
    out = torch.empty(0)
    assert kernels_guide.axpy(2.0, x.float(), y.float(), out) is out
    torch.testing.assert_close(out, (2 * x.float() + y.float()))
    assert kernels_guide.positive(x.float()).equal(x > 0)
    torch.testing.assert_close(kernels_guide.silu(x), torch.nn.functional.silu(x))
    torch.testing.assert_close(kernels_guide.sigmoid(x[0].float()), torch.sigmoid(x[0].float()))
    assert kernels_guide.largest(x, 1).equal(x.amax(1, True))
    torch.testing.assert_close(kernels_guide.add_rows(x.float()), x.float().sum(1))
    assert kernels_guide.total(x.float()) == pytest.approx(x.sum().item(), rel=1e-5)
    for dtype in (torch.float32, torch.int32, torch.bfloat16):
        z = torch.randint(0, 9, (4, 5)).to(dtype)
        assert kernels_guide.reduce_rows(z, 0).equal(z.sum(1, dtype=dtype))
        assert kernels_guide.reduce_rows(z, 1).equal(z.amax(1))
    z = torch.ones(5)
    assert kernels_guide.halve(z) is z
    assert z.equal(torch.full((5,), 0.5))


def test_streams(streams_guide):
    x = torch.randn(3)
    assert streams_guide.call_doubled(x).equal(x * 2)
    streams_guide.call_on_the_device_of(x)
    if not torch.cuda.is_available():
        assert streams_guide.describe() == "no CUDA device"
        with pytest.raises(torch.AcceleratorError, match="CUDA"):
            streams_guide.half_on_a_stream_of_high_priority(x)


@pytest.mark.parametrize("index", range(len(statements("operators-guide"))))
def test_statements_about_operators(operators_guide, index):
    operators_guide.call(f"statements_{index}", torch.randn(2, 3), torch.randn(2, 3))


def test_operators(operators_guide):
    ops = torch.ops.guide
    a, b = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    assert set(torch.library.opcheck(ops.scaled_mm.default, (a, b, 2.0)).values()) == {"SUCCESS"}
    torch.testing.assert_close(ops.scaled_mm(a, b), a @ b)
    with torch.autocast("cpu"):
        assert ops.scaled_mm(a, b).dtype == torch.bfloat16
    assert torch.autograd.gradcheck(lambda *xs: ops.blend(xs, 2.0), (a.double(), a.double()))
    torch.testing.assert_close(ops.blend([a, a]), 2 * a)
    weighted = ops.weighted.default
    assert {torch.Tag.pt2_compliant_tag, torch.Tag.pointwise} <= set(weighted.tags)
    torch.testing.assert_close(ops.weighted(a, [2.0, 3.0]), 2 + 3 * a)
    result = ops.weighted(a.detach(), [2.0, 3.0], 1, torch.float64)
    torch.testing.assert_close(result, (3 + 3 * a.detach()).double())
    with torch.autocast("cpu"):
        assert ops.weighted(a.half(), [1.0]).dtype == torch.float32
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(operators_guide.exp, (x,))
    assert torch.autograd.gradcheck(operators_guide.sincos, (x,))
    assert torch.autograd.gradgradcheck(operators_guide.sincos, (x,))
    assert torch.autograd.gradcheck(operators_guide.square, (x, 2.0), check_forward_ad=True)
    assert torch.autograd.gradcheck(ops.scaled_sine, (x, 2.0), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(ops.scaled_sine, (x, 2.0), check_fwd_over_rev=True)
    beta = torch.randn(2, 1, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(ops.swish(x, beta), x * torch.sigmoid(beta * x))
    assert torch.autograd.gradcheck(ops.swish, (x, beta))
    assert set(torch.library.opcheck(ops.swish.default, (x, beta)).values()) == {"SUCCESS"}
    assert torch.autograd.gradcheck(ops.sine, (x,))
    assert set(torch.library.opcheck(ops.sine.default, (x,)).values()) == {"SUCCESS"}
    rows = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ops.weighted_rows, (rows, x, 2.0))
    assert set(torch.library.opcheck(ops.weighted_rows.default, (rows, x, 2.0)).values()) == {"SUCCESS"}


def leaf(*sizes):
    return torch.randn(sizes, requires_grad=True)


SIZED = {
    "scaled_mm": lambda n: (leaf(n, n + 1), leaf(n + 1, n + 2)),
    "blend": lambda n: ([leaf(n, 2), leaf(n, 2)], 2.0),
    "weighted": lambda n: (leaf(n), [2.0, 3.0]),
    "row_sums": lambda n: (leaf(n, n + 1),),
    "stretched": lambda n: (leaf(n, 3), 2 * n + 1),
    "mean": lambda n: (leaf(n),),
    "places": lambda n: (torch.randn(n),),
    "weighted_rows": lambda n: (leaf(n, n + 1), leaf(n + 1), 2.0),
    "swish": lambda n: (leaf(n, n + 1), leaf(n + 1)),
    "swish_backward": lambda n: tuple(torch.randn(3, n)),
    "sine": lambda n: (leaf(n),),
    "scaled_sine": lambda n: (leaf(n), 2.0),
}


def test_the_sizes_of_all_operators():
    assert SIZED.keys() == set(re.findall(r'\bdefine\("guide::(\w+)"', (DOCS / "operators-guide.md").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZED)
def test_one_compilation_for_all_sizes(python_of_operators, name):
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        check_dynamic_shapes(getattr(torch.ops.guide, name), SIZED[name])


def test_operators_under_compiled_autograd(operators_guide):
    """It takes a state that is a size, and one that is a struct with names."""
    ops = torch.ops.guide
    torch._dynamo.reset()
    for n in (3, 4):
        x, weight = torch.randn(n, n + 1, requires_grad=True), torch.randn(n + 1, requires_grad=True)
        for result, leaves in ((ops.row_sums(x), [x]), (ops.weighted_rows(x, weight, float(n)), [x, weight])):
            expected = torch.autograd.grad(result.sin().sum(), leaves, retain_graph=True)
            with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", dynamic=True)):
                found = torch.autograd.grad(result.sin().sum(), leaves)
            torch.testing.assert_close(found, expected)


@pytest.fixture(scope="module")
def python_of_operators(operators_guide):
    """The names that the blocks of Python define. They register rules and fake kernels, which a process can do once."""
    names = {"torch": torch, "module": operators_guide}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "There is a perf")
        for python in re.findall(r"```python\n(.*?)```", (DOCS / "operators-guide.md").read_text(), re.DOTALL):
            exec(python, names)
    return names


def test_python_about_operators(python_of_operators):
    ops, names = torch.ops.guide, python_of_operators
    torch.testing.assert_close(names["y"], names["x"] ** 2)
    torch.testing.assert_close(names["hessian"], 4 * torch.eye(3, dtype=torch.double))
    torch.testing.assert_close(names["z"], 2 * names["x"].sin())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "There is a perf")
        batch, matrix = torch.randn(3, 4, 2), torch.randn(2, 5)
        product = torch.func.vmap(ops.scaled_mm, in_dims=(1, None))(batch, matrix)
        torch.testing.assert_close(product, batch.movedim(1, 0) @ matrix)
    x = torch.randn(3, 2, requires_grad=True)
    for operator, arguments in ((ops.row_sums, (x,)), (ops.stretched, (x, 7)), (ops.places, (torch.eye(3)[0],))):
        assert set(torch.library.opcheck(operator.default, arguments).values()) == {"SUCCESS"}
    torch.testing.assert_close(ops.stretched(x, 7), x.repeat_interleave(3, 0)[:7])
    with pytest.raises(ValueError, match="n must not be negative, got -1"):
        ops.stretched(x, -1)
    x = names["x"].requires_grad_()
    with one_process() as mesh:
        for dim in range(2):
            placed = distribute_tensor(x.detach(), mesh, [Shard(dim)]).requires_grad_()
            result = ops.scaled_sine(placed, 2.0)
            assert result.placements == (Shard(dim),)
            torch.testing.assert_close(result.full_tensor(), ops.scaled_sine(x, 2.0))
            (gradient,) = torch.autograd.grad(result.sum(), placed)
            (of_torch,) = torch.autograd.grad(placed.sin().sum(), placed)
            assert gradient.placements == of_torch.placements
            torch.testing.assert_close(gradient.full_tensor(), 2.0 * x.cos())


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")  # of torch 2.11
def test_the_profiler_shows_operators_under_their_names(operators_guide):
    x = torch.randn(4, 3, dtype=torch.double, requires_grad=True)
    with torch.profiler.profile() as profile:
        torch.ops.guide.scaled_sine(x, 2.0).sum().backward()
    assert {"guide::scaled_sine", "guide::scaled_sineBackward"} <= {event.key for event in profile.key_averages()}


@contextlib.contextmanager
def one_process():
    """A mesh of this process alone."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        yield init_device_mesh("cpu", (1,))
    finally:
        distributed.destroy_process_group()
