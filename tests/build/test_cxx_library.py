"""A module with a copy of libstdc++ of its own may crash when it formats a number; its import says so."""

import importlib.machinery
import importlib.util
import subprocess
import sysconfig
from pathlib import Path

import pytest
from conftest import TESTS, run

from interop import abi
from interop.doctor.module import examine_module
from interop.paths import get_source_dir
from interop.toolchain import CXX_FLAGS, compiler, find_torch

pytestmark = pytest.mark.long

FORMATTED = """
#include <sstream>
#include <string>

std::string NAME(unsigned long number) {
  std::ostringstream stream;
  stream << number;
  return stream.str();
}
"""
NATIVE = """
#include <Python.h>

#include <string>

std::string own(unsigned long number);
std::string of_library(unsigned long number);

static PyObject* formatted(PyObject*, PyObject* number) {
  const unsigned long value = PyLong_AsUnsignedLong(number);
  return PyUnicode_FromString((own(value) + of_library(value)).c_str());
}

static PyMethodDef methods[] = {{"formatted", formatted, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "m", nullptr, 0, methods};
PyMODINIT_FUNC PyInit_m() {
  return PyModule_Create(&definition);
}
"""
STATIC = ("-static-libstdc++",)
WAYS = {  # how the library, the module and its bootstrap are linked, and the file that has a copy then
    "shared": ((), (), (), None),
    "module": ((), STATIC, (), "native.so"),
    "module and bootstrap": ((), STATIC, STATIC, "native.so"),
    "library": (STATIC, (), (), "liblibrary.so"),
    # Nothing is shared, and so each copy works.
    "hidden": ((), (*STATIC, "-Wl,--exclude-libs,ALL"), (), None),
}

needs_archive = pytest.mark.skipif(
    "/" not in subprocess.run([*compiler(), "-print-file-name=libstdc++.a"], capture_output=True, text=True).stdout,
    reason="the compiler has no libstdc++.a",
)


def link(folder, output, *words):
    run([*compiler(), *CXX_FLAGS, "-O1", "-fPIC", "-shared", *words, "-o", output], cwd=folder)


@needs_archive
@pytest.mark.parametrize("way", WAYS)
def test_a_module(way, tmp_path):
    of_library, of_module, of_bootstrap, guilty = WAYS[way]
    (tmp_path / "own.cpp").write_text(FORMATTED.replace("NAME", "own"))
    (tmp_path / "other.cpp").write_text(FORMATTED.replace("NAME", "of_library"))
    (tmp_path / "native.cpp").write_text(NATIVE)
    python = f"-I{sysconfig.get_path('include')}"
    other = way.replace(" ", "_")  # a name of its own, because the loader takes a library with a known name for loaded
    link(tmp_path, f"lib{other}.so", "other.cpp", *of_library)
    link(tmp_path, "native.so", python, "native.cpp", "own.cpp", "-L.", f"-l{other}", "-Wl,-rpath,$ORIGIN", *of_module)
    macros = [
        "-DINTEROP_INIT=PyInit_m",
        '-DINTEROP_MODULE="m"',
        f'-DINTEROP_ABI="{abi.NAME}"',
        '-DINTEROP_NATIVE="native.so"',
    ]
    link(tmp_path, "m.so", python, *macros, Path(get_source_dir(), "bootstrap.cpp"), *of_bootstrap)
    loader = importlib.machinery.ExtensionFileLoader("m", str(tmp_path / "m.so"))
    spec = importlib.util.spec_from_file_location("m", loader.path, loader=loader)
    found = [one.text for one in examine_module(tmp_path / "native.so", run=False) if one.subject == "libstdc++"]
    if guilty is None:
        assert importlib.util.module_from_spec(spec).formatted(12) == "1212"
        assert found == []
    else:
        with pytest.raises(ImportError, match=rf"/{guilty} has a copy of libstdc\+\+ of its own.*CXX=g\+\+"):
            importlib.util.module_from_spec(spec)
        assert [guilty in text for text in found] == [True]


@needs_archive
@pytest.mark.parametrize("name", ["_bridges", "_core"])
@pytest.mark.extended
def test_this_package(name, tmp_path, bare):
    """Its objects are linked again, if they have stayed since it was installed.

    Some releases of torch load libstdc++ for the whole process, with libcudart. Then the loader binds the copy's
    symbols to that library, and the copy is not used.
    """
    torch = find_torch()
    suffix = f"temp.{sysconfig.get_config_var('SOABI')}-torch-{torch.version}/interop.{name}"
    objects = sorted((TESTS.parent / "build" / suffix).rglob("*.o"))
    if not objects:
        pytest.skip("this package was not installed from this folder")
    libraries = ["-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10"]
    link(tmp_path, f"{name}.so", *STATIC, *objects, f"-L{torch.lib_dir}", *libraries)
    code = f"""
import importlib.machinery, importlib.util, torch, interop
loader = importlib.machinery.ExtensionFileLoader("interop.{name}", {str(tmp_path / f"{name}.so")!r})
spec = importlib.util.spec_from_file_location(loader.name, loader.path, loader=loader)
try:
    loader.exec_module(importlib.util.module_from_spec(spec))
except ImportError as error:
    print(error)
"""
    text = f"torch-interop uses a copy of libstdc++ of its own, in {tmp_path}/{name}.so"
    for_all = "import ctypes, torch; print(hasattr(ctypes.CDLL(None), '_ZNKSt6locale2id5_M_idEv'))"
    found, is_for_all = bare(code), bare(for_all)
    assert is_for_all in ("True\n", "False\n")
    assert found == "" if is_for_all == "True\n" else text in found
