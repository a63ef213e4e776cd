"""The headers of stable modules declare the same as the headers of torch that they replace."""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
import torch
from conftest import needs_limited_api, needs_stable

from interop.build import CXX_FLAGS, Extension
from interop.paths import get_stable_dir

pytestmark = [needs_stable, pytest.mark.long]

HEADERS = Path(get_stable_dir(), "include")
TORCHS = """\
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h>
#include <torch/csrc/stable/c/shim.h>
#include <torch/headeronly/core/DeviceType.h>
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/MemoryFormat.h>
#include <torch/headeronly/core/ScalarType.h>
"""
OURS = """\
#include "interop/tensor.h"
#include "interop/stable/c_shim.h"
"""
NUMBERS = """
#include <string_view>
using namespace interop::stable;
#define SAME(name, ...) static_assert(names::k##name == c10::Layout::name && names::k##name == c10::k##name);
INTEROP_LAYOUTS(SAME)
#undef SAME
#define SAME(name, ...) static_assert(names::k##name == c10::MemoryFormat::name);
INTEROP_MEMORY_FORMATS(SAME)
#undef SAME
#define SAME(name, ...) static_assert(names::k##name == c10::DeviceType::name && names::k##name == c10::k##name);
INTEROP_DEVICE_TYPES(SAME)
#undef SAME
#define SAME(type, type_name) \\
  static_assert(element_types[int(c10::ScalarType::type_name)].size == sizeof(type)); \\
  static_assert(std::string_view(element_types[int(c10::ScalarType::type_name)].name) == #type_name); \\
  static_assert(names::k##type_name == c10::ScalarType::type_name);
AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(SAME)
#undef SAME
static_assert(int(c10::ScalarType::Undefined) <= numbers::element_types);
static_assert(int(c10::Layout::NumOptions) == numbers::layouts);
static_assert(int(c10::MemoryFormat::NumOptions) == numbers::memory_formats);
template <class T>
constexpr bool same_type = interop::scalar_type_of<T>() == c10::CppTypeToScalarType<T>::value;
static_assert(same_type<bool> && same_type<uint8_t> && same_type<int64_t> && same_type<uint16_t> && same_type<float>);
static_assert(same_type<double> && same_type<c10::Half> && same_type<c10::BFloat16> && same_type<c10::Float8_e5m2>);
static_assert(same_type<c10::complex<c10::Half>> && same_type<c10::complex<float>> && same_type<c10::complex<double>>);
c10::complex<double> number(const at::Scalar& value) { return value.toComplexDouble(); }
"""


def compiles(folder, text, **options):
    """The compiler's errors for a source for torch 2.11 and later; empty if there are none."""
    source = folder / "m.cpp"
    source.write_text(text)
    extension = Extension("m", [str(source)], stable="2.11", **options)
    macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros]
    folders = [f"-I{path}" for path in (*extension.include_dirs, sysconfig.get_path("include"))]
    command = ["c++", *CXX_FLAGS, "-fsyntax-only", "-w", *macros, *folders, str(source)]
    return subprocess.run(command, capture_output=True, text=True).stderr


@pytest.mark.parametrize("both", [TORCHS + OURS, OURS + TORCHS], ids=["after torch's", "before torch's"])
def test_they_agree_with_torchs(tmp_path, both):
    """In either order, because a user's C++ may include torch's headers too."""
    assert not compiles(tmp_path, both + NUMBERS)


def test_a_difference_is_noticed(tmp_path):
    declared = "AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* ret);"
    text = (HEADERS / "interop" / "stable" / "c_shim.h").read_text()
    assert declared in text
    assert "aoti_torch_get_dim" in compiles(tmp_path, TORCHS + text.replace(declared, declared.replace("64", "32")))


def test_the_class_of_a_kernels_error_is_pybind11s():
    """The one virtual function follows those of std::runtime_error in both. checks.py sees torch call it."""
    declared = (
        r"class \S+ builtin_exception : public std::runtime_error \{\s+public:\s+using [\w:]+;\s+virtual (.*?)\s+\};"
    )
    found = []
    for path in (HEADERS / "interop" / "library.h", Path(torch.__file__).parent / "include/pybind11/detail/common.h"):
        text = re.sub(r"//.*", "", path.read_text())
        found += re.findall(declared, text.replace('__attribute__((visibility("default")))', "exported"))
    assert found == ["void set_error() const = 0;"] * 2


def test_all_that_is_called_is_declared_and_nothing_else():
    here = HEADERS / "interop" / "stable"
    declared = re.findall(r"\b(\w+)\((?!\*)", (here / "c_shim.h").read_text().partition("typedef")[2].partition(";")[2])
    called = re.search(r"#define INTEROP_SHIM\(X\)(.*?)\n\n", (here / "shim.h").read_text(), re.DOTALL)
    assert sorted(re.findall(r"\bX\((\w+)\)", called[1])) == sorted(declared)


@needs_limited_api
@pytest.mark.parametrize("name", ["None", "True", "False", "NotImplemented"])
def test_what_is_returned_has_a_reference(tmp_path, name):
    """Also with the macros of CPython 3.12.0 to 3.13, which take none: CPython 3.11 would abort in the end."""
    macro = f"Py_RETURN_{name.upper()}"
    source = f"""
        #include <Python.h>
        #undef {macro}
        #define {macro} return Py_{name}
        #include "interop/stable/shim.h"
        #include <string_view>
        #define TEXT(...) #__VA_ARGS__
        #define EXPANDED(...) TEXT(__VA_ARGS__)
        static_assert(std::string_view(EXPANDED({macro})).find("Py_NewRef") != std::string_view::npos);
        """
    assert not compiles(tmp_path, source, py_limited_api="cp311")
