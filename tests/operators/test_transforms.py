"""Operators written in Cython are first-class in torch: compile, export, transforms, autocast, data parallelism."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.library import opcheck

OPS = torch.ops.interop_test


@pytest.fixture(autouse=True)
def _loaded(operators, failing, gradients):
    """The operators exist once their modules are imported."""
    torch._dynamo.reset()


def mixed(a, b):
    """A function that calls the operator among others."""
    return OPS.scaled_mm(a.sin(), b, 2.0).cos().sum()


def matrices(**options):
    return torch.randn(3, 4, **options), torch.randn(4, 5, **options)


EXAMPLES = {
    "scaled_mm": lambda: (OPS.scaled_mm.default, (*matrices(requires_grad=True), 2.0)),
    "one gradient": lambda: (OPS.scaled_mm.default, (torch.randn(3, 4), torch.randn(4, 5, requires_grad=True), 2.0)),
    "several results": lambda: (OPS.largest.default, (torch.randn(3, 4, requires_grad=True),)),
    "result kept": lambda: (OPS.exponential.default, (torch.randn(3, requires_grad=True),)),
    "list": lambda: (
        OPS.weighted.default,
        ([torch.randn(3, requires_grad=True), torch.randn(3)], torch.randn(3, requires_grad=True)),
    ),
    "in place": lambda: (OPS.add_one_.default, (torch.randn(3),)),
    "kernel for Autograd": lambda: (OPS.sine.default, (torch.randn(3, requires_grad=True),)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_opcheck(name):
    op, arguments = EXAMPLES[name]()
    results = opcheck(op, arguments)
    assert len(results) >= 4
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.long
@pytest.mark.extended
class TestCompile:
    @pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
    @pytest.mark.parametrize("dynamic", [False, True])
    def test_forward_and_backward(self, backend, dynamic):
        compiled = torch.compile(mixed, backend=backend, fullgraph=True, dynamic=dynamic)
        for rows in (3, 6):
            a, b = torch.randn(rows, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
            result, expected = compiled(a, b), mixed(a, b)
            torch.testing.assert_close(result, expected)
            torch.testing.assert_close(torch.autograd.grad(result, (a, b)), torch.autograd.grad(expected, (a, b)))

    def test_in_place(self):
        def function(x):
            y = x * 2
            OPS.add_one_(y)
            return y + 1

        x = torch.randn(3)
        assert torch.equal(torch.compile(function, fullgraph=True)(x), function(x))

    def test_an_error_in_a_kernel(self, failing):
        def function(x, what):
            return OPS.fail_cpu(x, what) + 1

        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        with pytest.raises(KeyError, match="'a key'"):
            compiled(torch.ones(3, 4), 0)
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        with pytest.raises(failing.Custom) as raised:
            compiled(torch.ones(3, 4), 1)
        assert raised.value.b == 7

    def test_export(self):
        class Module(torch.nn.Module):
            def forward(self, a, b):
                return OPS.scaled_mm(a, b, 2.0)

        a, b = matrices()
        rows = torch.export.Dim("rows", min=2)
        program = torch.export.export(Module(), (a, b), dynamic_shapes=({0: rows}, None))
        assert OPS.scaled_mm.default in [node.target for node in program.graph.nodes]
        longer = torch.randn(7, 4)
        assert torch.equal(program.module()(longer, b), OPS.scaled_mm(longer, b, 2.0))

    def test_fake_tensors(self):
        a, b = matrices()
        with FakeTensorMode() as mode:
            result = OPS.scaled_mm(mode.from_tensor(a), mode.from_tensor(b), 2.0)
            value, index = OPS.largest(mode.from_tensor(a))
        assert (result.shape, result.dtype, result.device) == ((3, 5), torch.float32, torch.device("cpu"))
        assert (value.shape, index.dtype) == ((3,), torch.int64)


class TestFunctions:
    """torch.func's transforms."""

    @pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap calls the kernel for each example
    def test_vmap(self):
        batch, (_, b) = torch.randn(7, 3, 4), matrices()
        result = torch.func.vmap(lambda a: OPS.scaled_mm(a, b, 2.0))(batch)
        torch.testing.assert_close(result, batch @ b * 2)

    def test_vmap_with_a_rule(self):
        """A rule registered from Python works for an operator from Cython as for any other."""
        calls = []

        def rule(info, dims, a, b, s):
            calls.append(dims)
            return torch.matmul(a.movedim(dims[0], 0), b) * s, 0

        library = torch.library.Library("interop_test", "FRAGMENT")
        torch.library.register_vmap("interop_test::scaled_mm", rule, lib=library)
        try:
            batch, (_, b) = torch.randn(3, 7, 4), matrices()
            result = torch.func.vmap(lambda a: OPS.scaled_mm(a, b, 2.0), in_dims=1)(batch)
            torch.testing.assert_close(result, batch.movedim(1, 0) @ b * 2)
            assert len(calls) == 1
        finally:
            library._destroy()

    @pytest.mark.parametrize("name", ["scaled_mm", "sine"])
    def test_grad(self, name):
        a, b = matrices()
        mine, theirs = {
            "scaled_mm": (lambda x: OPS.scaled_mm(x, b, 2.0).sin().sum(), lambda x: (x @ b * 2).sin().sum()),
            "sine": (lambda x: OPS.sine(x).pow(2).sum(), lambda x: x.sin().pow(2).sum()),
        }[name]
        torch.testing.assert_close(torch.func.grad(mine)(a), torch.func.grad(theirs)(a))

    @pytest.mark.parametrize(("mine", "theirs"), [("sine", torch.sin), ("exponential", torch.exp)])
    def test_levels(self, mine, theirs):
        """Transforms may be nested, within an outer graph. `exponential` saves its result."""
        func = torch.func
        x = torch.randn(4, requires_grad=True)

        def all_of(function):
            plain = x.detach()
            value, pull = func.vjp(function, x)
            gradient, outer = func.grad_and_value(lambda t: function(t).sum())(x)
            return (
                func.grad(lambda t: func.grad(lambda u: function(u).sum())(t).sum())(plain),
                func.jacrev(func.jacrev(function))(plain),
                func.grad(lambda u: func.vjp(function, u)[0].sum())(plain),
                torch.autograd.grad(value.sum(), x)[0],
                pull(torch.ones(4))[0],
                torch.autograd.grad(outer, x, retain_graph=True)[0],
                torch.autograd.grad(gradient.sum(), x)[0],
            )

        torch.testing.assert_close(all_of(getattr(OPS, mine)), all_of(theirs))

    @pytest.mark.filterwarnings("ignore:There is a performance drop")
    def test_vmap_of_grad_and_jacrev(self):
        batch, (a, b) = torch.randn(7, 3, 4), matrices()
        mine = torch.func.vmap(torch.func.grad(lambda x: OPS.scaled_mm(x, b, 2.0).sin().sum()))(batch)
        theirs = torch.func.vmap(torch.func.grad(lambda x: (x @ b * 2).sin().sum()))(batch)
        torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(
            torch.func.jacrev(lambda x: OPS.scaled_mm(x, b, 2.0))(a), torch.func.jacrev(lambda x: x @ b * 2)(a)
        )

    def test_a_function_called_directly(self, gradients):
        x = torch.randn(3)
        for transform in (torch.func.vmap, torch.func.jacrev, lambda f: torch.func.grad(lambda t: f(t).sum())):
            torch.testing.assert_close(transform(gradients.exp)(x), transform(torch.exp)(x))

    def test_functional_call(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(4, 5))

            def forward(self, x):
                return OPS.scaled_mm(x, self.weight, 2.0)

        module, (a, b) = Module(), matrices()
        assert torch.equal(torch.func.functional_call(module, {"weight": b}, (a,)), OPS.scaled_mm(a, b, 2.0))
        gradient = torch.func.grad(lambda p: torch.func.functional_call(module, p, (a,)).sum())({"weight": b})
        torch.testing.assert_close(gradient["weight"], 2 * a.T @ torch.ones(3, 5))


class TestAutocast:
    def test_it_casts(self):
        a, b = matrices(requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result = OPS.scaled_mm(a, b, 2.0)
        assert result.dtype == torch.bfloat16
        result.sum().backward()
        assert (a.grad.dtype, b.grad.dtype) == (torch.float32, torch.float32)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_the_dtype_of_the_region(self, dtype):
        a, b = matrices()
        with torch.autocast("cpu", dtype=dtype):
            assert OPS.product(a, b).dtype == dtype
            assert OPS.product(a, b.bfloat16()).dtype == dtype
        assert OPS.product(a, b).dtype == torch.float32

    def test_it_leaves_float64_and_integers(self):
        a, b = matrices(dtype=torch.float64)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert OPS.scaled_mm(a, b, 2.0).dtype == torch.float64

    def test_lists(self):
        a, b = matrices()
        index = torch.tensor([1])
        library = torch.library.Library("interop_test", "FRAGMENT")
        library.impl("gaps", lambda xs: [x.clone() for x in xs if x is not None], "CPU")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            tensors = OPS.tensors([a, index, b], b)
            gaps = OPS.gaps([a, None, index])
        torch.testing.assert_close(tensors, [a.bfloat16(), index, b.bfloat16(), b.bfloat16()], rtol=0, atol=0)
        torch.testing.assert_close(gaps, [a.bfloat16(), index], rtol=0, atol=0)

    def test_off(self):
        a, b = matrices()
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.autocast("cpu", enabled=False):
            assert OPS.scaled_mm(a, b, 2.0).dtype == torch.float32


class Failing(torch.utils.data.Dataset):
    """A data set whose items come from a kernel that raises."""

    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return OPS.fail_star(torch.ones(3, 4), self.what)


@pytest.mark.long
@pytest.mark.parametrize(("what", "kind", "message"), [(0, KeyError, "a key"), (4, MemoryError, "no memory")])
def test_an_error_in_a_worker_of_a_data_loader(what, kind, message):
    loader = torch.utils.data.DataLoader(Failing(what), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(kind, match=message):
        next(iter(loader))


def test_a_worker_of_a_data_loader():
    loader = torch.utils.data.DataLoader(Failing(99), num_workers=2, multiprocessing_context="fork")
    assert [item.shape for item in loader] == [(1, 3, 4)] * 4


@pytest.mark.long
def test_data_parallel_training_in_two_processes(site, tmp_path):
    """DistributedDataParallel over gloo gives the gradients of one process with the whole batch."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""\
            import os, sys
            import torch
            import torch.distributed as dist
            import operators

            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    torch.manual_seed(0)
                    self.first = torch.nn.Parameter(torch.randn(4, 5))
                    self.second = torch.nn.Parameter(torch.randn(5))

                def forward(self, x):
                    return torch.ops.interop_test.scaled_mm(x, self.first, 0.5) * torch.ops.interop_test.weighted(
                        [self.second, self.second], self.second)

            rank = int(sys.argv[1])
            dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
            torch.manual_seed(1)
            x = torch.randn(8, 4)
            model, alone = torch.nn.parallel.DistributedDataParallel(Model()), Model()
            for one, part in ((model, x[rank::2]), (alone, x)):
                optimizer = torch.optim.SGD(one.parameters(), 0.01)
                for _ in range(5):
                    optimizer.zero_grad()
                    one(part).pow(2).mean().backward()
                    optimizer.step()
            for mine, theirs in zip(model.parameters(), alone.parameters(), strict=True):
                torch.testing.assert_close(mine.grad, theirs.grad)
                torch.testing.assert_close(mine, theirs)
            dist.destroy_process_group()
            print("equal", flush=True)
            os._exit(0)  # torch's own threads may abort a process that ends, with any model
            """)
    )
    environment = os.environ | {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(script)]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    printed = [process.communicate(timeout=300) for process in processes]
    for process, (out, err) in zip(processes, printed, strict=True):
        assert (process.returncode, out.splitlines()[-1:]) == (0, ["equal"]), (out, err)  # Gloo may print before
