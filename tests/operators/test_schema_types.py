"""Every type of argument and result that a schema can have: in kernels, gradients, autocast, Function and Operator."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from conftest import PROJECTS, TESTS, import_from
from torch.library import opcheck

from interop.stable_abi import release_of
from interop.testing import check_dynamic_shapes

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


@pytest.mark.parametrize(("i", "value"), TAKEN)
def test_a_rule_for_vmap(i, value):
    operator, batch = getattr(OPS, f"take_{i}"), torch.tensor([[1.0, -2.0, 4.0], [3.0, 5.0, 7.0]])
    torch.testing.assert_close(torch.func.vmap(lambda x: operator(x, value))(batch), operator(batch, value))


@torch_keeps_what_it_compiled
@pytest.mark.long
@pytest.mark.parametrize("name", table.MODULES)
@pytest.mark.extended
def test_one_compilation_for_all_sizes(name):
    """All operators of a module that torch can trace, in one graph; the sizes are those of x."""
    own = [
        (getattr(OPS, f"{way}_{i}"), copied(value, requires_grad=True))
        for i, value in {param.values[0]: param.values[1] for param in TAKEN}.items()
        for way in ("take", "apply", "call")
        if table.CASES[i][0].schema.split("(")[0].rstrip("?[]2") in table.MODULES[name]
        if not isinstance(value, torch.Generator)  # no graph holds one
    ]
    check_dynamic_shapes(
        lambda x: torch.stack([operator(x, value) for operator, value in own]),
        lambda n: (torch.randn(n, n + 1, requires_grad=True),),
    )


def failed_checks(operator, arguments):
    """What opcheck finds, as the error of each of its tests that fail."""
    results = opcheck(operator, arguments, raise_exception=False)
    return {test: str(result) for test, result in results.items() if result != "SUCCESS"}


@torch_keeps_what_it_compiled
@pytest.mark.parametrize("i", sorted({param.values[0] for param in TAKEN}))
@pytest.mark.long
def test_opcheck(i):
    one = table.CASES[i][0]
    for value in one.values:
        if not isinstance(value, torch.Generator):  # opcheck cannot copy one
            found = failed_checks(getattr(OPS, f"take_{i}").default, (example(), copied(value, requires_grad=True)))
            assert found.keys() <= {one.fails}


@torch_keeps_what_it_compiled
@pytest.mark.parametrize("one", [one for one in table.TYPES if one.fails], ids=lambda one: one.schema)
def test_opcheck_fails_for_an_operator_in_python_too(one):
    """The guide says so, with torch's reason. Where torch itself accepts such an operator, it accepts ours."""

    def take(x, a):
        if one.changes:
            torch._foreach_add_(leaves(a), 1)
        return x * 2

    with torch.library._scoped_library("schema_types_in_python", "FRAGMENT") as library:
        library.define(f"take(Tensor x, {one.schema} a) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
        library.impl("take", take, "CPU")
        library.impl("take", lambda x, a: x * 2, "Meta")
        found = failed_checks(torch.ops.schema_types_in_python.take.default, (torch.ones(1), copied(one.values[-1])))
    if not found and release_of(torch.__version__) < (2, 12):
        i = next(i for i, (other, _) in enumerate(table.CASES) if other is one)
        operator = getattr(OPS, f"take_{i}").default
        assert failed_checks(operator, (example(), copied(one.values[-1], requires_grad=True))) == {}
        return
    assert [*found] == [one.fails]
    assert table.REASONS[one.fails] in found[one.fails]


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
    one = table.CASES[i][0]
    for value in one.values:
        found = failed_checks(getattr(OPS, f"change_{i}").default, (torch.ones(1), copied(value)))
        assert found.keys() <= {one.fails}


@pytest.mark.parametrize("way", ["give", "call_give"])
@pytest.mark.parametrize(("i", "value"), GIVEN)
def test_a_result(way, i, value):
    x = example()
    y, given = getattr(OPS, f"{way}_{i}")(x, value)
    if leaves(value):
        assert all(map(torch.equal, leaves(given), leaves(value)))
    else:  # torch returns a dtype, a layout or a memory format as a number
        expected = torch.utils._pytree.tree_map(lambda one: table.SEEN.get(one, one), value)
        assert (type(given), given) == (type(expected), expected)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.full((3,), 2.0))


@pytest.mark.parametrize(("i", "value"), GIVEN)
def test_a_result_of_a_rule_for_vmap(i, value):
    operator, given = getattr(OPS, f"give_{i}"), []

    def function(x):
        y, kept = operator(x, value)
        given.append(kept)
        return y

    batch = torch.ones(2, 3)
    assert torch.equal(torch.func.vmap(function)(batch), batch * 2)
    expected = operator(batch, value)[1]
    assert type(given[0]) is type(expected)
    assert all(map(torch.equal, leaves(given[0]), leaves(expected))) if leaves(value) else given[0] == expected


@pytest.mark.parametrize(("i", "value"), GIVEN)
def test_a_result_under_autocast_and_of_a_fake_kernel(i, value):
    operator = getattr(OPS, f"give_{i}")
    with torch.autocast("cpu", torch.bfloat16):
        assert operator(example(), value)[0].dtype == torch.bfloat16
    on_meta = torch.utils._pytree.tree_map(lambda one: one.to("meta") if isinstance(one, torch.Tensor) else one, value)
    assert operator(torch.empty(4, device="meta"), on_meta)[0].shape == (4,)


def index_of(schema, parameter):
    """The number of a case."""
    return next(i for i, (one, each) in enumerate(table.CASES) if (one.schema, each) == (schema, parameter))


@pytest.mark.parametrize(
    ("schema", "parameter", "number"), [("int[2]", "at.IntArrayRef", 3), ("float[2]", "const vector[double]&", 0.5)]
)
def test_a_number_for_a_list_of_fixed_length(schema, parameter, number):
    """As in torch's own operators, it stands for all elements."""
    operator = getattr(OPS, f"take_{index_of(schema, parameter)}")
    assert torch.equal(operator(example(), number), example() * table.digest([number, number]))


def test_the_length_of_a_list_is_checked_only_for_an_array():
    long = [True, False, True]
    parameters = ("const vector[cbool]&", "BoolArray2")
    vector, array = (getattr(OPS, f"take_{index_of('bool[2]', each)}") for each in parameters)
    assert torch.equal(vector(example(), long), example() * table.digest(long))
    with pytest.raises(RuntimeError, match="size"):
        array(example(), long)


@pytest.mark.parametrize("i", sorted({param.values[0] for param in TAKEN}))
def test_the_message_for_an_unfit_kernel_has_a_fitting_declaration(i, site):
    module = import_from(site, next(iter(table.MODULES)))
    with pytest.raises(TypeError, match=r"; declare it .*\. The schema is ") as caught:
        module.register_unfit(f"schema_types::take_{i}")
    advice = str(caught.value).partition("; declare it ")[2].partition(". The schema is ")[0]
    assert advice.partition(",")[0] in table.CASES[i][0].parameters


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
