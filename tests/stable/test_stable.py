"""Modules for many releases of torch, under the torch that runs; `make matrix` tests the same files under others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import checks
import pytest
import torch
from conftest import IMPORT_INTERPRETERS, import_from, needs_stable
from conftest import run as run_program
from elftools.elf.elffile import ELFFile

from interop.paths import get_stable_dir
from interop.stable_abi import release_of
from interop.testing import check_dynamic_shapes

pytestmark = [pytest.mark.native, needs_stable]


@pytest.fixture(scope="session")
def modules(site):
    return import_from(site, "stable_tensors"), import_from(site, "stable_operators")


# What torch itself keeps of each call, so that `make leaks` must not repeat the check.
KEPT_BY_TORCH = {
    checks.check_operators: "torch keeps what it compiled",
    checks.check_errors_of_torch: "torch.library keeps some 140 bytes of each kernel that it registers",
}


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=pytest.mark.unchecked(by="leaks", reason=KEPT_BY_TORCH[check]))
        if check in KEPT_BY_TORCH
        else check
        for check in checks.CHECKS
    ],
    ids=lambda check: check.__name__,
)
def test_under_this_torch(modules, check):
    check(*modules)


SIZED = {
    "scaled_mm": lambda n: (torch.randn(n, n + 1, requires_grad=True), torch.randn(n + 1, n, requires_grad=True), 2.0),
    "all_types": lambda n: ([torch.randn(n)], 2.0, "abc", True, [1], None, torch.float64, 0),
}


@pytest.mark.long
@pytest.mark.unchecked(by="leaks", reason="torch keeps what it compiled")
@pytest.mark.parametrize("name", SIZED)
def test_one_compilation_for_all_sizes(modules, name):
    """Of the operators that make a tensor and have a fake kernel."""
    check_dynamic_shapes(getattr(torch.ops.stable_operators, name), SIZED[name])


def run(site, *arguments, **variables):
    command = [sys.executable, "-P", checks.__file__, site, *arguments]
    environment = os.environ | variables
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, cwd="/")


@pytest.mark.long
def test_torchs_own_way_from_an_object_to_its_tensor(site, modules):
    """The fallback for a layout of torch.Tensor other than the one known when this was written."""
    done = run(site, INTEROP_BORROW="0")
    assert done.returncode == 0, done.stderr
    assert '"borrows": false' in done.stdout


ANOTHER_HANDLE = """
import torch
take, others = torch._C._aoti.unsafe_alloc_void_ptr_from_tensor, [torch.zeros(9)]
torch._C._aoti.unsafe_alloc_void_ptr_from_tensor = lambda tensor: take(others[0] if others else tensor)
import stable_tensors  # compares what it finds with such handles
others.clear()
print(stable_tensors.is_borrowing(), stable_tensors.numel(torch.ones(3)))
"""


@pytest.mark.skipif(release_of(torch.__version__) >= (2, 14), reason="torch's own function for handles is in C")
@pytest.mark.long
def test_nothing_is_borrowed_where_the_handle_is_another_one(bare, site, modules):
    assert bare(ANOTHER_HANDLE, site).split() == ["False", "3"]


@pytest.mark.unchecked(by="asan", reason="freed memory is kept back to catch its use, so the process grows")
@pytest.mark.long
@pytest.mark.extended
def test_many_calls(site, modules):
    """5000 calls of each function of the files leak nothing; `make one-binary` makes a million."""
    done = run(site, "5000")
    assert done.returncode == 0, done.stderr


FAKE_TORCH = """\
__version__ = {version!r}
class Tensor: ...
"""


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2.9.1", "was built for torch >= 2.11, and torch 2.9.1 is installed; upgrade torch"),
        ("2.11.0", "and torch 2.11.0 is installed, whose library has no "),
        ("nonsense", "and torch nonsense is installed"),
    ],
)
@pytest.mark.long
def test_a_torch_that_does_not_do(site, modules, tmp_path, version, message):
    """The module checks torch's version, and the symbols of its library."""
    (tmp_path / "torch.py").write_text(FAKE_TORCH.format(version=version))
    command = [sys.executable, "-c", "import stable_tensors"]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{site}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, cwd="/")
    assert done.returncode == 1
    assert "ImportError: this module" in done.stderr
    assert message in done.stderr


IN_ANOTHER_INTERPRETER = """
import sys
{interpreters}
{before}
code = "try: import {module}\\nexcept ImportError as error: print(error)"
other = interpreters.create()
result = interpreters.run_string(other, f"import sys; sys.path[:] = {{sys.path!r}}")
result = interpreters.run_string(other, code)
interpreters.destroy(other)
print("torch" in sys.modules)
import {module}, torch
print(result, {module}.numel(torch.ones(3)))
"""


@pytest.mark.parametrize("before", ["import {module}", ""], ids=["after the main one", "first"])
@pytest.mark.parametrize("module", ["stable_tensors", "consumer"])
@pytest.mark.long
def test_another_interpreter(bare, site, before, module):
    """It raises ImportError, without a crash or torch's import, which hangs there. The main interpreter still works."""
    printed = bare(
        IN_ANOTHER_INTERPRETER.format(
            interpreters=IMPORT_INTERPRETERS, before=before.format(module=module), module=module
        ),
        site,
    ).splitlines()
    ours = "this module, and torch, can be imported by the main interpreter of a process only"
    cpythons = f"module {module} does not support loading in subinterpreters"  # from 3.12 on, before it calls ours
    assert printed[0].startswith((ours, cpythons))
    assert printed[1:] == [str(bool(before)), "None 3"]


AFTER_ANOTHER_INTERPRETER = f"""
{IMPORT_INTERPRETERS}
import torch, stable_tensors
torch.set_num_threads(2)
interpreters.destroy(interpreters.create())
try:
    stable_tensors.fail_in_torch_on_a_thread(torch.ones(2))
except (RuntimeError, ValueError) as error:  # checks.py expects these two too: releases of torch differ
    print("At least one of 'min' or 'max' must not be None" in str(error))
print(stable_tensors.double_(torch.ones(3)).tolist())
"""


def test_after_another_interpreter(bare, site):
    """PyGILState_Check() always says yes then, and a part of a loop must not look for an error without the GIL."""
    assert bare(AFTER_ANOTHER_INTERPRETER, site).split("\n")[:2] == ["True", "[2.0, 2.0, 2.0]"]


ANOTHER_SCHEMA = """
import torch, stable_call_forms
schema = torch._C._get_schema
torch._C._get_schema = lambda name, overload: schema("aten::add", "Tensor")  # as if this torch had another schema
try:
    stable_call_forms.full((2,), 1.5, None)
except RuntimeError as error:
    print("compiled for the operator aten::full" in str(error))
with torch.device("meta"):
    print(torch.ones(1).device)
torch._C._get_schema = schema
print(stable_call_forms.full((2,), 1.5, None).tolist())
"""


def test_after_an_operator_with_another_schema(bare, site):
    """The error leaves no mode of torch behind on the thread: subclasses and torch.device still have their say."""
    assert bare(ANOTHER_SCHEMA, site).split("\n")[:3] == ["True", "meta", "[1.5, 1.5]"]


def library(site):
    (path,) = Path(site).glob("stable_tensors*.so")
    return path


@pytest.mark.parametrize("module", ["stable_tensors", "stable_operators"])
def test_the_auditors_find_nothing_newer_than_the_floors(site, modules, module):
    """They read two files that name most of the interface. test_stable_build.py shows that they notice faults."""
    (path,) = Path(site).glob(f"{module}*.so")
    tools = Path(sys.executable).parent
    if ".abi3." in path.name:  # without the Limited API, as where there is no GIL, the file is for one CPython
        run_program([tools / "abi3audit", "--strict", "--assume-minimum-abi3", "3.11", path])
    pytest.importorskip("torch_abi_audit")
    output = run_program([tools / "torch-abi-audit", "--check", "torch", path])
    assert re.search(r"Torch ABI: +STABLE", output)
    assert re.search(r"Min torch: +2\.11\.0", output)


def test_it_is_linked_to_no_torch(site, modules):
    with library(site).open("rb") as file:
        needed = [tag.needed for tag in ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
    assert not [name for name in needed if "torch" in name or "c10" in name]


def test_what_is_required_is_in_the_oldest_torch_and_what_is_newer_is_not():
    """By the list of an auditor, which it takes from torch's sources."""
    versions = pytest.importorskip("torch_abi_audit.torch_versions").stable_shim_versions()
    header = Path(get_stable_dir(), "include", "interop", "stable", "shim.h").read_text()
    required = re.findall(r"^ +X\((\w+)\)", header, re.MULTILINE)
    newer = re.findall(r"^ +X\((\w+), ", header, re.MULTILINE)
    assert len(required) > 30
    assert len(newer) >= 3
    assert [name for name in required if versions[name] > (2, 11, 0)] == []
    assert [name for name in newer if versions.get(name, (9, 0, 0)) <= (2, 11, 0)] == []


def test_numbers_of_element_types(modules):
    """The enum in the headers is that of the C interface, whose functions map each dtype to its number."""
    for name in ("float32", "float64", "int64", "bool", "complex64", "bfloat16", "uint16", "float8_e5m2"):
        x = torch.empty(0, dtype=getattr(torch, name))
        assert modules[0].metadata(x)["dtype"] is x.dtype
