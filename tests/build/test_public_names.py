"""The public names of `import interop`, and the classes of its exceptions."""

import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import tomllib

import pytest
from conftest import TESTS

import interop
from interop.build.cuda import NvccError
from interop.cli import CommandError
from interop.cuda import CompileError
from interop.jit import BuildError


def test_every_listed_name_is_there(bare):
    """Every listed name is found in a process that has imported no part of the package before."""
    said = bare(
        "import interop\n"
        "for name in dir(interop): print(name, getattr(interop, name) is not None)\n"
        "print(interop.build.Extension('m', ['m.pyx']).name)"
    )
    assert said.splitlines() == [*(f"{name} True" for name in dir(interop)), "m"]


def test_the_version_is_that_of_pyproject():
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]
    assert interop.__version__ == project["version"] == importlib.metadata.version("torch-interop")


def exceptions():
    """All exception classes that modules of the package define."""
    for found in pkgutil.walk_packages(interop.__path__, "interop."):
        if found.name.rpartition(".")[2] == "__main__" or ".templates" in found.name:
            continue
        if found.name == "interop.numba" and importlib.util.find_spec("numba") is None:
            continue
        for _, value in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
            if issubclass(value, BaseException) and value.__module__ == found.name:
                yield value


def test_exceptions_have_one_base():
    found = set(exceptions())
    assert {BuildError, CommandError, CompileError, NvccError} < found
    assert [one for one in found if not issubclass(one, interop.Error)] == []


@pytest.mark.parametrize("kind", [BuildError, CompileError])
def test_exceptions_are_builtin_ones_too(kind):
    assert issubclass(kind, RuntimeError)


def test_the_base_is_light(bare):
    """A command can raise `interop.Error` without importing torch."""
    code = "import sys; sys.argv = ['interop-config']; from interop import Error; print('torch' in sys.modules)"
    assert bare(code) == "False\n"
