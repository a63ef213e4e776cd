"""A module with a copy of libstdc++ of its own would crash as soon as it formats a number; its import says so."""

import importlib.machinery
import importlib.util
import subprocess
import sysconfig
from pathlib import Path

import pytest
from conftest import TESTS

from interop import abi, get_include
from interop.paths import get_source_dir
from interop.toolchain import CXX_FLAGS, compiler

NATIVE = """
#include "cxx_library.h"

#include <sstream>

static PyObject* formatted(PyObject*, PyObject* number) {
  std::ostringstream stream;
  stream << PyLong_AsUnsignedLong(number);
  return PyUnicode_FromString(stream.str().c_str());
}

static PyObject* required(PyObject*, PyObject*) {
  return interop::require_shared_cxx_library([] {}) ? PyBool_FromLong(1) : nullptr;
}

static PyMethodDef methods[] = {
    {"formatted", formatted, METH_O, nullptr},
    {"required", required, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "m", nullptr, 0, methods};
PyMODINIT_FUNC PyInit_m() {
  return PyModule_Create(&definition);
}
"""


@pytest.fixture(scope="module", params=["shared", "static"])
def linked(request, tmp_path_factory):
    """How libstdc++ is linked, and the files of the module's bootstrap and of the module itself."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "native.cpp").write_text(NATIVE)
    command = [*compiler(), *CXX_FLAGS, "-O0", "-fPIC", "-shared", f"-I{sysconfig.get_path('include')}"]
    static = ["-static-libstdc++"] if request.param == "static" else []
    native = [f"-I{TESTS.parent / 'csrc'}", f"-I{get_include()}", "native.cpp", "-o", "native.so"]
    subprocess.run([*command, *native, *static], cwd=folder, check=True)
    macros = ["-DINTEROP_MODULE=m", f'-DINTEROP_ABI="{abi.NAME}"', '-DINTEROP_NATIVE="native.so"']
    subprocess.run([*command, *macros, Path(get_source_dir(), "bootstrap.cpp"), "-o", "m.so"], cwd=folder, check=True)
    return request.param, folder / "m.so", folder / "native.so"


def load(path):
    loader = importlib.machinery.ExtensionFileLoader("m", str(path))
    return importlib.util.module_from_spec(importlib.util.spec_from_file_location("m", path, loader=loader))


def test_a_bootstrap(linked):
    how, bootstrap, _ = linked
    if how == "shared":
        assert load(bootstrap).formatted(12) == "12"
    else:
        with pytest.raises(
            ImportError, match=r"'m' has a copy of libstdc\+\+ of its own.*-static-libstdc\+\+.*CXX=g\+\+"
        ):
            load(bootstrap)


def test_the_package_itself(linked):
    how, _, native = linked
    module = load(native)
    if how == "shared":
        assert module.required()
    else:
        with pytest.raises(
            ImportError, match=r"torch-interop was built with a copy of libstdc\+\+ of its own, in .*native\.so"
        ):
            module.required()
