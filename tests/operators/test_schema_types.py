"""Every type of argument and result that a schema can have: in kernels, gradients, autocast, Function and Operator."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from conftest import PROJECTS, TESTS, import_from
from torch.library import opcheck

pytestmark = pytest.mark.native

SPEC = importlib.util.spec_from_file_location("schema_types_table", PROJECTS / "schema_types" / "table.py")
table = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = table  # where dataclasses look for it
SPEC.loader.exec_module(table)

OPS = torch.ops.schema_types
torch_keeps_what_it_compiled = pytest.mark.unchecked(by="leaks", reason="torch keeps what opcheck compiled")
TAKEN = [
    pytest.param(i, value, id=f"{one.schema}-{parameter}-{j}")
    for i, (one, parameter) in enumerate(table.CASES)
    for j, value in enumerate(one.values)
    if not one.changes
]
CHANGED = [
    pytest.param(i, value, id=f"{one.schema}-{j}")
    for i, (one, _) in enumerate(table.CASES)
    for j, value in enumerate(one.values)
    if one.changes
]
GIVEN = [
    pytest.param(i, value, id=f"{one.schema}-{j}")
    for i, (one, parameter) in enumerate(table.CASES)
    for j, value in enumerate(one.values)
    if table.gives(one, parameter)
]


@pytest.fixture(autouse=True)
def _loaded(site):
    """The operators exist once their modules are imported."""
    for name in table.MODULES:
        import_from(site, name)


def example():
    return torch.tensor([1.0, -2.0, 4.0], requires_grad=True)


def copied(value, *, requires_grad=False):
    """The value with tensors of its own."""
    return torch.utils._pytree.tree_map(
        lambda one: one.clone().requires_grad_(requires_grad) if isinstance(one, torch.Tensor) else one, value
    )


def leaves(value):
    """The tensors in an argument."""
    return [one for one in torch.utils._pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


@pytest.mark.parametrize("way", ["take", "apply", "call"])
@pytest.mark.parametrize(("i", "value"), TAKEN)
def test_an_argument(way, i, value):
    """The value reaches the kernel, and setup_context or the context of a Function; its tensors get gradients."""
    x, factor, own = example(), table.digest(value), copied(value, requires_grad=True)
    y = getattr(OPS, f"{way}_{i}")(x, own)
    expected = x * factor + sum(one.sum() for one in leaves(own))
    torch.testing.assert_close(y, expected)
    inputs, gradient = [x, *leaves(own)], torch.linspace(1, 2, 3)
    torch.testing.assert_close(
        torch.autograd.grad(y, inputs, gradient), torch.autograd.grad(expected, inputs, gradient)
    )


@pytest.mark.parametrize(("i", "value"), TAKEN)
def test_a_fake_kernel(i, value):
    assert getattr(OPS, f"take_{i}")(torch.empty(4, device="meta"), value).shape == (4,)


@pytest.mark.parametrize(("i", "value"), TAKEN)
def test_autocast(i, value):
    with torch.autocast("cpu", torch.bfloat16):
        assert getattr(OPS, f"take_{i}")(example(), value).dtype == torch.bfloat16


@torch_keeps_what_it_compiled
@pytest.mark.parametrize("i", sorted({param.values[0] for param in TAKEN}))
def test_opcheck(i):
    for value in table.CASES[i][0].values:
        if not isinstance(value, torch.Generator):  # opcheck cannot copy one
            results = opcheck(getattr(OPS, f"take_{i}").default, (example(), copied(value, requires_grad=True)))
            assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("way", ["change", "call_change"])
@pytest.mark.parametrize(("i", "value"), CHANGED)
def test_a_change(way, i, value):
    x, own = torch.ones(1), copied(value)
    versions = [one._version for one in leaves(own)]
    torch.testing.assert_close(getattr(OPS, f"{way}_{i}")(x, own), x * table.digest(value))
    for after, before, version in zip(leaves(own), leaves(value), versions, strict=True):
        assert torch.equal(after, before + 1)
        assert after._version == version + 1


@torch_keeps_what_it_compiled
@pytest.mark.parametrize("i", sorted({param.values[0] for param in CHANGED}))
def test_opcheck_of_a_change(i):
    """It has a fake kernel, and torch.compile sees the change."""
    for value in table.CASES[i][0].values:
        results = opcheck(getattr(OPS, f"change_{i}").default, (torch.ones(1), copied(value)))
        assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("way", ["give", "call_give"])
@pytest.mark.parametrize(("i", "value"), GIVEN)
def test_a_result(way, i, value):
    x = example()
    y, given = getattr(OPS, f"{way}_{i}")(x, value)
    if leaves(value):
        assert all(map(torch.equal, leaves(given), leaves(value)))
    elif isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        assert given == table.SEEN[value]  # torch returns such results as numbers
    else:
        assert (type(given), given) == (type(value), value)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.full((3,), 2.0))


@pytest.mark.parametrize(("i", "value"), GIVEN)
def test_a_result_under_autocast_and_of_a_fake_kernel(i, value):
    operator = getattr(OPS, f"give_{i}")
    with torch.autocast("cpu", torch.bfloat16):
        assert operator(example(), value)[0].dtype == torch.bfloat16
    on_meta = torch.utils._pytree.tree_map(lambda one: one.to("meta") if isinstance(one, torch.Tensor) else one, value)
    assert operator(torch.empty(4, device="meta"), on_meta)[0].shape == (4,)


def test_all_that_torch_infers_is_there():
    """The table has all types that torch.library infers; it also has the others of a schema."""
    infer = pytest.importorskip("torch._library.infer_schema")
    known = {one.schema for one in table.TYPES}
    missing = set(infer.SUPPORTED_PARAM_TYPES.values()) - known
    assert missing == set()
    results = {one.schema for one, parameter in table.CASES if table.gives(one, parameter)}
    assert set(infer.SUPPORTED_RETURN_TYPES.values()) - results == set()


def test_the_guide_has_the_table():
    tools = TESTS.parent / "tools"
    path = os.pathsep.join([str(tools), os.environ.get("PYTHONPATH", "")])  # the checkers' PYTHONSAFEPATH leaves it out
    command = [sys.executable, tools / "schema_table.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (0, "")
