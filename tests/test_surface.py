"""C++ accepts every declared call, with arguments of the types that Cython passes, and gives what is declared.

The calls stand in unevaluated expressions, so thousands of them take seconds to compile.
"""

import json
import re
import subprocess
import sysconfig

import pytest
from torch.utils.cpp_extension import include_paths

import interop
from interop.codegen.calls import function_calls, method_calls
from interop.codegen.surface import read
from interop.codegen.write import NAMESPACE

# What Cython writes for an argument of each declared type. A truth value is an int to it.
PASSED = {
    "BoolArray2": "std::array<bool, 2>&",
    "BoolArray3": "std::array<bool, 3>&",
    "BoolArray4": "std::array<bool, 4>&",
    "CScalar&": "at::Scalar&",
    "CTensor&": "at::Tensor&",
    "Device": "interop::Device&",
    "DeviceIndex": "c10::DeviceIndex&",
    "DoubleList": "std::vector<double>&",
    "Generator": "at::Generator&",
    "IntList": "std::vector<int64_t>&",
    "Layout": "at::Layout&",
    "MemoryFormat": "at::MemoryFormat&",
    "OptionalTensorList": "c10::List<std::optional<at::Tensor>>&",
    "ScalarList": "std::vector<at::Scalar>&",
    "ScalarType": "at::ScalarType&",
    "Storage": "at::Storage&",
    "Tensor&": "at::Tensor&",
    "TensorList": "std::vector<at::Tensor>&",
    "TensorOptions": "at::TensorOptions&",
    "cbool": "int",
    "const char*": "const char*",
    "double": "double",
    "int": "int",
    "int64_t": "int64_t",
}
# An IntArrayRef poses as a vector, and must be taken wherever one is.
POSING = {"IntList": "c10::IntArrayRef&"}

RESULTS = {"CTensor&": "const at::Tensor&", "Tensor&": "at::Tensor&", "cbool": "bool"}


def result(declared):
    """The C++ type of a declared result."""
    if declared in RESULTS:
        return RESULTS[declared]
    text = re.sub(r"tuple\d\[", "std::tuple[", declared)
    text = re.sub(r"\bvector\[", "std::vector[", text)
    text = re.sub(r"(?<!:)\b(Tensor|Scalar|ScalarType)\b", r"at::\1", text)
    return text.replace("[", "<").replace("]", ">")


def expression(call, passed):
    """The C++ call that Cython writes for a declared one."""
    arguments = ", ".join(f"std::declval<{passed[kind]}>()" for kind in call.types)
    wrapper = call.declaration.wrapper
    target = f"{NAMESPACE}::{wrapper}" if wrapper else f"std::declval<at::Tensor&>().{call.declaration.name}"
    return f"{target}({arguments})"


def program(calls, passed):
    """A C++ source that compiles if all calls are accepted and give what is declared (or more than nothing)."""
    lines = ["#include <interop/device.h>", "#include <interop/functions.h>", "#include <array>", "#include <vector>"]
    lines.append(
        "template <class To, class From> constexpr bool gives = std::is_void_v<To> || std::is_same_v<To, From>;"
    )
    for call in calls:
        given = f"decltype({expression(call, passed)})"
        schema = json.dumps(call.declaration.schema)
        lines.append(f"static_assert(gives<{result(call.declaration.result)}, {given}>, {schema});")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def surface():
    return read()


@pytest.fixture
def accepted(tmp_path):
    """Compiles a program and returns the compiler's errors."""

    def compile_program(text):
        source = tmp_path / "calls.cpp"
        source.write_text(text)
        folders = [interop.get_include(), *include_paths(), sysconfig.get_path("include")]
        command = [
            "c++",
            "-std=c++20",
            "-fsyntax-only",
            "-w",
            "-fmax-errors=10",
            *(f"-I{folder}" for folder in folders),
        ]
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, timeout=500)
        assert done.returncode == bool(done.stderr), done.stderr
        return done.stderr

    return compile_program


@pytest.mark.parametrize("passed", [PASSED, PASSED | POSING], ids=["vector", "IntArrayRef"])
def test_every_function(surface, accepted, passed):
    calls = function_calls(surface.functions)
    assert len(calls) > len(surface.functions)
    assert accepted(program(calls, passed)) == ""


@pytest.mark.parametrize("passed", [PASSED, PASSED | POSING], ids=["vector", "IntArrayRef"])
def test_every_method(surface, accepted, passed):
    calls = method_calls(surface.methods)
    assert len(calls) > len(surface.methods)
    assert accepted(program(calls, passed)) == ""


def test_a_wrong_declaration_is_noticed(surface, accepted):
    """What the tests above find is found."""
    call = next(call for call in function_calls(surface.functions) if call.declaration.name == "trace")
    assert "static assertion failed" in accepted(program([call], PASSED).replace("gives<at::Tensor,", "gives<bool,"))
    assert "too few arguments" in accepted(program([call], PASSED).replace("std::declval<at::Tensor&>()", ""))
