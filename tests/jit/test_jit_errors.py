"""The messages if a module cannot be built: the line that is wrong, or the part that is missing."""

import errno
import fcntl
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import with_precompiled_headers

import interop
from interop.build import TranslationError, cythonize
from interop.cython import hints
from interop.cython.hints import hint
from interop.cython.versions import running
from interop.jit import BuildError, build, precompiled
from interop.jit.cache_folder import root
from interop.jit.diagnostics import CommandFailedError
from interop.jit.options import Options, checked
from interop.toolchain import compiler, is_gcc

pytestmark = pytest.mark.usefixtures("jit_cache")


def error_of(*arguments, **options):
    with pytest.raises(BuildError) as raised:
        interop.load_inline(*arguments, **options)
    return raised.value


def undeclared(name):
    """The compiler's message about an undeclared name."""
    return f"'{name}' was not declared" if is_gcc() else f"use of undeclared identifier '{name}'"


INSTANTIATED = """\
cimport ATen as at
cimport torch
from interop cimport AT_FLOATING_TYPES, any_t, instantiate_part, scalar_t
from libc.stdint cimport int64_t
cdef extern from *:
    \"""
    template <class T> T odd(T x, T y) { return x % 2 + y % 3; }
    template <class T> T none(T x) { return x.none(); }
    \"""
    T odd[T](T x, T y) nogil
    T none[T](T x) nogil
cdef void _odd(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    (<scalar_t*> of)[0] = none(odd((<scalar_t*> of)[0], (<scalar_t*> of)[0]))
def f(torch.Tensor x not None):
    instantiate_part(x.cdata.scalar_type(), b"f", _odd, AT_FLOATING_TYPES, at.kHalf)(0, 1, x.cdata.data_ptr())
"""


def hide_ninja(folder, monkeypatch):
    """Hides ninja. All other commands stay on PATH."""
    commands = folder / "commands"
    commands.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name != "ninja":
                (commands / name).unlink(missing_ok=True)
                (commands / name).symlink_to(os.path.join(place, name))
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setitem(sys.modules, "ninja", None)


@pytest.mark.extended
class TestInSources:
    """The message has the place, the line and a caret, but nothing from the compiler's command."""

    @pytest.mark.parametrize(
        ("source", "place", "caret"),
        [
            ("def f(x):\n    return g(x\n", "cython_source:3:1: Expected ')'", None),
            (
                "def f(x):\n    return nothing(x)\n",
                "cython_source:2:12: undeclared name not builtin: nothing",
                "nothing",
            ),
            ("cimport ATen as at\ndef f(): at.sqare(at.ones((2,)))\n", "did you mean at.square?", "sqare"),
            ("cimport torch\ndef f():\n    cdef torch.NoGradGuard mode\n", "'mode' is declared but never", "cdef"),
            (
                "cdef extern from *:\n    int nothing(int)\ndef f(x):\n    y = 1\n    return nothing(x)\n",
                f"cython_source:5:12: {undeclared('nothing')}",
                "nothing",
            ),
            ("cimport ATen as at\n\ndef f():\n    at.zeros((1.5, 2))\n", "cython_source:4:8: a parameter of", "zeros"),
            (
                "def f(): pass\ncdef extern from 'no/such.h':\n    int g()\n",
                "cython_source:2:19: there is no header 'no/such.h'",
                "no/such.h",
            ),
            (
                'cdef extern from *:\n    """\n    int f(int x) { return nothing; }\n    """\n    int f(int)\nf(1)\n',
                f"cython_source:3:27: {undeclared('nothing')}",
                "nothing",
            ),
        ],
        ids=["syntax", "cython name", "aten name", "guard", "c++ name", "template", "header", "c++ in the pyx"],
    )
    def test_the_line_is_shown(self, source, place, caret):
        error = error_of(source)
        lines = str(error).splitlines()
        assert place in lines[1]
        if caret:
            assert lines[2].strip() in source
            assert lines[2][lines[3].index("^") :].startswith(caret)
        assert len(lines) <= 2 + 3 * len(error.diagnostics)
        assert "-fPIC" not in str(error)
        assert error.output

    def test_the_line_of_cpp(self):
        error = error_of("cdef extern from *:\n    int f(int)\n", "int f(int x) {\n  return x + y;\n}\n")
        assert f"cpp_source:2:14: {undeclared('y')}" in str(error)
        assert "\n      return x + y;\n" in str(error)
        assert error.command[0] == compiler()[0]

    def test_the_line_in_another_file(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "wrong.pyx").write_text("from helper cimport two\ndef f(): return two()\n")
        (tmp_path / "helper.pxd").write_text("cdef inline int two(): return 2 +\n")
        with pytest.raises(BuildError, match=r"\nhelper\.pxd:1:34: "):
            interop.load("wrong.pyx")
        (tmp_path / "helper.pxd").write_text('cdef extern from "two.h":\n    int two()\n')
        (tmp_path / "two.h").write_text("inline int two() {\n  return 2\n}\n")
        with pytest.raises(BuildError, match=r"\ntwo\.h:2:11: expected ';' .*\n      return 2\n  +\^"):
            interop.load("wrong.pyx")

    def test_many_errors_are_counted(self):
        error = error_of("def f():\n" + "".join(f"    nothing_{i}()\n" for i in range(20)))
        assert len(error.diagnostics) == 20
        assert str(error).count("undeclared name") == 5
        assert "... and 15 more" in str(error)
        assert error.diagnostics[19].line == 21

    def test_an_error_in_all_instances_is_said_once(self):
        """C++ compiles the function for each dtype. Another error in the same line is shown, and one elsewhere."""
        error = error_of(INSTANTIATED, extra_compile_args=["-O0"])
        found = [(one.line, one.message.count("%")) for one in error.diagnostics]
        if is_gcc():
            assert found == [(7, 1), (7, 1), (8, 0)]
            assert str(error).count("T odd(T x, T y)") == 2
        else:  # clang stops at the first % of a line, and has other words for a class than for a number
            assert sorted(found) == [(7, 1), (8, 0), (8, 0)]
            assert len({one.message for one in error.diagnostics}) == len(found)

    @pytest.mark.parametrize(
        ("statement", "expected", "hint"),
        [
            ("at.empty((n, 3))", r"'empty', of type '.*<long>', takes no argument of type '\(SymInt, long\)'", "at"),
            ("x.reshape((n, -1))", r"'reshape', of type '.*', takes no argument of type '\(SymInt, long\)'", "x"),
            ("x.expand((n, n, n, 4))", r"'expand', of type '.*', takes no argument of type '\(SymInt, .*\)'", "x"),
            ("at.zeros((1.5, 2))", r"'zeros', of type '.*', takes no argument of type '\(double, long\)'", None),
        ],
    )
    def test_an_argument_that_cpp_rejects(self, statement, expected, hint):
        """The message names the types. What C++ says of the same line after it is a consequence."""
        head = "cimport ATen as at\ncdef at.Tensor f(const at.Tensor& x, at.SymInt n) except * nogil:\n"
        error = error_of(f"{head}    return {statement}\n")
        (found,) = error.diagnostics
        name = statement.partition("(")[0].partition(".")[2]
        assert re.search(expected, found.message)
        assert (found.line, found.column) == (3, 12 + statement.index(name))
        assert found.hint == (hint and f"for sizes that are an at.SymInt, write {hint}.{name}_symint(...)")

    @pytest.mark.parametrize(
        ("statement", "hint"),
        [
            ("return at.split(x, n)[0]", "write at.split_symint(...)"),
            ("return x.view((n, -1))", "write x.view_symint(...)"),
            ("return at.empty_symint((n / 2,))", "write floordiv(n, 2)"),
            ("cdef long k = <long> n", "keep it as an at.SymInt"),
            ("cdef at.SymBool b = n.sym_gt(1) or n.sym_lt(0)", "write a.sym_or(b)"),
            ("check(n > 2 and n.sym_lt(9), b'big')", "alone: write a check for each"),
            ("check(n.sym_gt(1) and n.sym_lt(9), b'big')", "a.sym_and(b)"),
        ],
    )
    def test_a_size_that_cpp_rejects(self, statement, hint):
        """Only C++ knows that these take no at.SymInt."""
        head = "cimport ATen as at\nfrom interop cimport check\n"
        head += "cdef at.Tensor f(const at.Tensor& x, at.SymInt n) except * nogil:\n"
        error = error_of(f"{head}    {statement}\n    return x\n")
        assert hint in (error.diagnostics[0].hint or "")

    @pytest.mark.parametrize("kind", ["object", "Derived"])
    def test_a_python_object_as_state(self, kind):
        """It compiles in Cython, and would crash."""
        head = "cimport ATen as at\ncimport torch\nfrom torch.autograd cimport Context\n"
        head += "cdef class Base: pass\ncdef class Derived(Base): pass\n"
        head += "cdef at.Tensor f(Context& ctx, const at.Tensor& x) except * with gil:\n"
        error = error_of(f"{head}    ctx.state[{kind}]()\n    return x\n")
        assert "ctx.state[T] does not count references" in error.diagnostics[0].message
        assert error.diagnostics[0].line == 7

    @pytest.mark.parametrize(
        "statement",
        [
            "for a in v: pass",
            pytest.param(
                "sort(v.begin(), v.end())", marks=pytest.mark.skipif(not is_gcc(), reason="clang names no iterator")
            ),
        ],
    )
    def test_an_iterator_of_a_type_that_cpp_instantiates(self, statement):
        error = error_of(
            "cimport ATen as at\nfrom interop cimport AT_FLOATING_TYPES, any_t, instantiate_part, scalar_t\n"
            "from libc.stdint cimport int64_t\nfrom libcpp.algorithm cimport sort\nfrom libcpp.vector cimport vector\n"
            "cdef void f(int64_t begin, int64_t end, any_t* of) noexcept nogil:\n    cdef vector[scalar_t] v\n"
            f"    cdef scalar_t a\n    {statement}\ninstantiate_part(at.kFloat, b'f', f, AT_FLOATING_TYPES)\n"
        )
        assert "write sort(v.data(), v.data() + v.size()), and for i in range(v.size())" in error.diagnostics[0].hint

    @pytest.mark.parametrize("expression", ["n.value()[0]", "3 < n.value()[0]"])
    def test_an_operand_that_cython_keeps_in_a_class_of_its_own(self, expression):
        error = error_of(
            "from libc.stdint cimport int64_t\nfrom libcpp.optional cimport optional\n"
            "from libcpp.vector cimport vector\ncdef int64_t f(optional[vector[int64_t]]& n) except *:\n"
            f"    return {expression}\n"
        )
        assert "write v.value().at(i) for v.value()[i]" in error.diagnostics[0].hint

    @pytest.mark.parametrize(
        ("parameter", "schema", "result"),
        [
            ("vector[int]", "int[]", "void"),
            ("optional[vector[float]]", "float[]?", "void"),
            ("optional[signed char]", "int?", "void"),
            ("long double", "float", "void"),
            ("char", "int", "void"),
            ("int64_t", "int", "vector[int]"),
        ],
    )
    def test_a_number_that_no_kernel_has(self, parameter, schema, result):
        returns = {"void": "()", "vector[int]": "int[]"}[result]
        error = error_of(
            "cimport ATen as at\nfrom libc.stdint cimport int64_t\nfrom libcpp.optional cimport optional\n"
            "from libcpp.vector cimport vector\nfrom torch.library cimport define, impl\n"
            f"cdef {result} kernel({parameter} n) noexcept nogil:\n    pass\n"
            f'define("a::b", "({schema} n) -> {returns}")\nimpl("a::b", "default", kernel)\n'
        )
        found, *others = error.diagnostics
        assert found.line == 9
        assert not others or not is_gcc()  # clang goes on
        assert "in a vector or an optional it is an int64_t, a double or a cbool" in found.message

    def test_a_rule_without_its_info(self):
        """g++ names the line only above a warning that comes before the error."""
        error = error_of(
            "cimport ATen as at\nfrom torch.library cimport register_vmap\n"
            "cdef at.Tensor rule(const at.Tensor& x) except * nogil:\n    return x\n"
            'register_vmap("a::b", rule)\n'
        )
        (found,) = error.diagnostics
        assert found.line == 5
        assert "first the info, then the operator's arguments" in found.message

    def test_what_nobody_defines(self):
        error = error_of("cdef extern from *:\n    int f(int)\ndef g(): return f(1)\n", "int f(int);\n")
        assert "f(int) is declared and used, but no source and no library defines it" in str(error)

    def test_cpp_that_is_no_module(self, tmp_path):
        (tmp_path / "only_cpp.cpp").write_text("int x;\n")
        with pytest.raises(BuildError, match=r"no source defines PyInit_only_cpp; give a \.pyx, or write"):
            interop.load(tmp_path / "only_cpp.cpp")

    def test_a_flag_that_there_is_not(self):
        error = error_of("x = 1\n", extra_compile_args=["-fno-such-flag"])
        assert re.search(r"(unrecognized command-line option|unknown argument:) '-fno-such-flag'", str(error))

    def test_a_library_that_there_is_not(self):
        assert "cannot find -lno_such_library" in str(error_of("x = 1\n", libraries=["no_such_library"]))

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("x = 1\ninclude 'missing.pxi'\n", "2:9: there is no file 'missing.pxi' to include"),
            ("# A text.\n# -*- coding: nonsense -*-\n", "2:15: unknown encoding: nonsense"),
        ],
    )
    def test_what_cython_cannot_read(self, tmp_path, text, place):
        """The message shows the line. Cython reports these errors without it, like errors of its own."""
        path = tmp_path / f"unreadable_{len(text)}.pyx"
        path.write_text(text)
        with pytest.raises(BuildError) as raised:
            interop.load(path)
        assert f"{path.name}:{place}" in str(raised.value)
        written, caret = str(raised.value).splitlines()[2:4]
        assert written[caret.index("^") :].startswith(("'missing", "nonsense"))

    def test_a_directive_that_is_no_encoding(self):
        source = "# cython: c_string_encoding=default\ndef f(): return 'x'\n"
        assert interop.load_inline(source, name="no_encoding").f() == "x"

    def test_what_cython_holds_back_for_a_while(self):
        error = error_of("cimport ATen as at\ndef f(): return [at.ones((2,))]\n")
        assert "cython_source:2:25: Cannot convert 'Tensor' to Python object" in str(error)


HINTS_FOLLOWED = """
cimport torch
cimport ATen as at
from interop cimport indices, tensors
from libc.stdint cimport int64_t

def f(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Tensor a = x.cdata, b = y.cdata, none = at.Tensor(), changed = a.clone()
    cdef int64_t i
    changed.index_put_(indices(0), 7.0)
    return (
        torch.wrap(at.matmul(a, b)), torch.wrap(at.pow(a, 2)), torch.wrap(at.floor_divide(a, b)),
        torch.wrap(at.remainder(a, b)), torch.wrap(a.index(indices(at.Slice(0, 2)))),
        torch.wrap(a.index(indices(0, at.Slice(1, 3)))), torch.wrap(changed),
        torch.wrap(at.cat(tensors(a, b))), torch.wrap_size(a.sizes()), torch.wrap_dtype(a.scalar_type()),
        torch.wrap_device(a.device()), torch.wrap_layout(a.layout()), a.dim(), torch.wrap(a.t()),
        [torch.wrap(a.select(0, i)) for i in range(a.size(0))], a.select(0, 0).select(0, 0).is_nonzero(),
        at.sum(a).item[double](), torch.wrap(none),
    )
"""


@pytest.mark.extended
class TestHints:
    """Hints for users who are new to the tensors of two languages."""

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("return torch.wrap(at.add(x, y.cdata))", "x is a torch.Tensor, a Python object: .* C.. tensor, x.cdata"),
            ("return torch.wrap(at.relu(x))", "x is a torch.Tensor, a Python object: .* C.. tensor, x.cdata"),
            ("cdef at.Tensor a = y", "y is a torch.Tensor, a Python object: .* C.. tensor, y.cdata"),
            ("return torch.wrap(z)", "its C.. tensor is x.cdata for a torch.Tensor x, torch.unpack"),
            ("return at.relu(x.cdata)", r"torch\.wrap\(\.\.\.\) makes a Python object from it"),
            ("return [at.relu(x.cdata)]", r"torch\.wrap\(\.\.\.\) makes a Python object from it"),
            (
                "return torch.wrap(x.cdata.sum(dim=1))",
                "functions take no keyword arguments: pass 'dim' by position",
            ),
            (
                "return torch.wrap(at.sum(x.cdata, dim=1))",
                "functions take no keyword arguments: pass 'dim' by position",
            ),
            ("return torch.wrap(x.cdata @ y.cdata)", r"no operator @: write at\.matmul\(a, b\)"),
            ("cdef at.Tensor a = x @ y", r"no operator @: write at\.matmul\(a, b\)"),
            ("return torch.wrap(x.cdata ** 2)", r"no operator \*\*: write at\.pow\(a, b\)"),
            ("return torch.wrap(x.cdata // 2)", r"no operator //: write at\.floor_divide\(a, b\)"),
            ("return torch.wrap(x.cdata % 2)", r"no operator %: write at\.remainder\(a, b\)"),
            ("return torch.wrap(x.cdata[0:2])", r"x\.index\(indices\(at\.Slice\(0, 2\)\)\)"),
            ("return torch.wrap(x.cdata[0, 1])", r"x\.index\(indices\(0, at\.Slice\(1, 3\)\)\)"),
            ("x.cdata[0] = 1", r"x\.index_put_\(indices\(0\), value\), after: from interop cimport indices"),
            (
                "return torch.wrap(at.cat([x.cdata, y.cdata]))",
                r"a list of C.. tensors as tensors\(a, b\), after: from interop cimport tensors",
            ),
            ("return x.cdata.shape", r"shape is x\.sizes\(\), or torch\.wrap_size\(x\.sizes\(\)\) for Python"),
            ("return x.cdata.dtype", r"dtype is x\.scalar_type\(\), or torch\.wrap_dtype"),
            ("return x.cdata.sum", r"a C.. function; call it: sum\(\)"),
            ("return x.cdata.numpy()", r"Python's tensors have 'numpy': torch\.wrap\(x\)\.numpy"),
            ("for a in x.cdata: pass", r"cannot iterate over a C.. tensor: use x\.select\(0, i\)"),
            ("if x.cdata: return 1", r"x\.is_nonzero\(\)"),
            ("cdef double a = at.sum(x.cdata)", r"x\.item\[double\]\(\)"),
            ("return x.cdata.sum().item()", r"x\.item\[double\]\(\)"),
            ("a, b = at.topk(x.cdata, 2)", r"get0\(r\), get1\(r\)"),
            ("return torch.wrap(at.max(x.cdata, 1)[0])", r"get0\(r\), get1\(r\)"),
            ("cdef at.Tensor a = None", r"undefined C.. tensor, write at\.Tensor\(\)"),
        ],
    )
    def test_what_to_write(self, body, expected):
        error = error_of(
            f"cimport torch\ncimport ATen as at\ndef f(torch.Tensor x not None, torch.Tensor y, z):\n    {body}\n"
        )
        lines = str(error).splitlines()
        assert re.search(expected, error.diagnostics[0].hint)
        assert lines[4].startswith("    hint: ")

    @pytest.mark.parametrize("body", ["a[0, 1] = 2.0", "cdef float y = a[0, 1]", "return a[0, 1]", "y = 2 * a[0, 1]"])
    def test_two_indices_of_an_accessor(self, body):
        error = error_of(
            "cimport torch\nfrom interop cimport accessor2\ndef f(torch.Tensor x):\n"
            f"    cdef accessor2[float] a = accessor2[float](x.cdata, b'x')\n    {body}\n"
        )
        assert error.diagnostics[0].hint == "an accessor takes one index at a time: write a[i][j]"

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("def f(torch.Tensor x): return x\n", "write at the top: cimport torch"),
            ("def f(x): return at.relu(x)\n", "write at the top: cimport ATen as at"),
            ("cimport aten as at\ndef f(x): return at.relu(x)\n", "the packages are called ATen and torch"),
            ("cimport ATen as at\ndef f(at.Tensor x): at.relu(x)\n", "declare the parameter as torch.Tensor x, after"),
            ("from ATen cimport elementwise\n", "write at the top: from interop cimport elementwise"),
            ("from c10.core.Stream cimport current_stream\n", "write at the top: from interop.stream cimport current"),
            ("cimport ATen as at\ndef f(): at.zeros(dims(1, 2))\n", "write at the top: from interop cimport dims"),
            (
                "import torch\ncimport ATen as at\ndef f(torch.Tensor x): return torch.wrap(at.tanh(x.cdata))\n",
                "`import` gives only Python's module; write also: cimport torch",
            ),
            ("from torch cimport empty\n", "write at.empty, after: cimport ATen as at"),
            ("from ATen cimport tahn\n", "did you mean: from ATen cimport tanh"),
        ],
    )
    def test_what_to_cimport(self, source, expected):
        (diagnostic,) = error_of(source).diagnostics
        assert diagnostic.hint.startswith(expected)

    @pytest.mark.parametrize(
        "body",
        [
            "return torch.wrap(at.sum(x.cdata, dim=1))",
            "return torch.wrap(x.cdata @ x.cdata)",
            "x.cdata[0] = 1",
            "cdef at.Tensor a = None",
        ],
    )
    def test_the_cause_alone(self, body):
        """Only the cause is shown. Cython reports two or three errors for each of these."""
        error = error_of(f"cimport torch\ncimport ATen as at\ndef f(torch.Tensor x):\n    {body}\n")
        assert len(error.diagnostics) == 1
        assert error.output.count("Error compiling Cython file") > 1

    def test_two_causes(self):
        error = error_of(
            "cimport torch\ncimport ATen as at\ndef f(torch.Tensor x):\n    y = x.cdata.shape\n    return x.cdata\n"
        )
        assert [one.line for one in error.diagnostics] == [4, 5]

    def test_the_hints_are_true(self):
        """The code that the hints propose does what the user meant."""
        module = interop.load_inline(HINTS_FOLLOWED)
        x, y = torch.rand(3, 3), torch.rand(3, 3) + 1
        changed = x.clone()
        changed[0] = 7
        expected = (
            *(x @ y, x**2, x // y, x % y, x[0:2], x[0, 1:3], changed, torch.cat([x, y]), x.shape, x.dtype, x.device),
            *(x.layout, x.ndim, x.T, list(x), bool(x[0, 0]), x.sum().item(), None),
        )
        for got, wanted in zip(module.f(x, y), expected, strict=True):
            if isinstance(wanted, (torch.Tensor, list)):
                torch.testing.assert_close(got, wanted)
            else:
                assert got == wanted

    def test_nothing_is_said_of_what_is_not_known(self):
        error = error_of("def f(x): return y\n")
        assert "hint" not in str(error)

    @pytest.mark.parametrize(
        ("message", "body"),
        [
            # A C++ tensor has the name of a Python tensor in another function.
            ("Cannot convert Python object to 'CTensor'", "def g(torch.Tensor x): pass\ndef f(x): at.relu(x)"),
            ("no suitable method found (candidates: 8)", "def g(torch.Tensor x): pass\ndef f(): at.add(x, x, 1, 2)"),
            ("no suitable method found (candidates: 8)", "def f():\n    cdef Tensor x = y\n    at.add(x, x, 1, 2)"),
            ("no suitable method found (candidates: 8)", "def f():  # torch.Tensor x\n    at.add(x, x, 1, 2)"),
            ("Call with wrong number of arguments (expected 2, got 3)", "def f(torch.Tensor x): at.matmul(x, x, x)"),
            ("C function got unexpected keyword argument 'x'", "def f(): g(\n  at.add(1),\n  x=2)"),
            ("Cannot convert 'vector[Tensor]' to Python object", "def f(): return x"),
            ("Cannot convert 'TensorOptions' to Python object", "def f(): return x"),
            ("Cannot convert 'at.Tensor *' to Python object", "def f(): return x"),
        ],
    )
    def test_what_is_false_of_the_name(self, message, body):
        lines = ["cimport torch", "cimport ATen as at", "from ATen cimport Tensor", *body.splitlines()]
        column = max(
            lines[-1].rfind("x=") if "keyword" in message else lines[-1].find("(x"), lines[-1].find("rn x") + 2
        )
        found = hint(message, lines, len(lines), column + 1 + ("convert Python" in message))
        assert found is None or "x is a torch.Tensor" not in found
        assert found is None or "convert Python" in message

    @pytest.mark.parametrize(
        "first",
        ["from torch cimport Tensor", "from torch cimport (no_grad,\n    Tensor)", "from torch cimport Tensor as T"],
    )
    def test_a_short_name(self, first):
        lines = [*first.splitlines(), "async def f(a, Tensor x):", "    if a:", "        b = 1", "    at.add(x, 1, 2)"]
        found = hint("no suitable method found (candidates: 8)", lines, len(lines), lines[-1].index("(") + 1)
        assert found == (None if " as " in first else hints._of_python("x"))

    def test_an_overload_of_tensors_that_there_is_not(self):
        """A call with C++ tensors gets the declarations. The hint about Python tensors would be wrong."""
        error = error_of(
            "cimport torch\ncimport ATen as at\ndef f(torch.Tensor x): return torch.wrap(at.add(x.cdata))\n"
        )
        assert error.diagnostics[0].hint.startswith("the declarations are ")

    def test_a_package_that_is_built(self, tmp_path, capfd):
        (tmp_path / "hinted.pyx").write_text(
            "cimport torch\ncimport ATen as at\ndef f(torch.Tensor x): return torch.wrap(at.relu(x))\n"
        )
        with pytest.raises(TranslationError):
            cythonize(str(tmp_path / "hinted.pyx"), build_dir=str(tmp_path))
        assert "hint: x is a torch.Tensor" in capfd.readouterr().err


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"extra_compile_args": {"CXX": ["-O3"]}}, "must be 'cxx' or 'nvcc', got 'CXX'; did you mean 'cxx'"),
            ({"extra_compile_args": {"cxx": [], "nvc": ["-O3"]}}, "got 'nvc'; did you mean 'nvcc'"),
            ({"extra_compile_args": {1: ["-O3"]}}, "must be 'cxx' or 'nvcc', got 1$"),
            ({"compiler_directives": {1: True}}, "keys of compiler_directives must be strings, .*, got 1"),
        ],
    )
    def test_keys_that_there_are_not(self, options, message):
        with pytest.raises(TypeError, match=message):
            interop.load_inline("x = 1\n", **options)

    @pytest.mark.parametrize("function", [interop.load, interop.load_inline])
    def test_help_names_them(self, function):
        parameters = inspect.signature(function).parameters
        assert {"force", "include_dirs", "extra_compile_args", "annotate"} <= {*parameters}
        defaults = {name: one.default for name, one in parameters.items() if name in Options.__annotations__}
        assert checked(function.__name__, defaults) == {}
        assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values())

    @pytest.mark.parametrize("name", ["my-module", "2nd", "", "a.b", "módulo", "a b", "class", "None", 3])
    def test_names_that_are_none(self, name):
        with pytest.raises(ValueError, match="a module's name must be an identifier in ASCII and not a keyword, got"):
            interop.load_inline("x = 1\n", name=name)

    def test_a_name_that_is_too_long(self):
        with pytest.raises(ValueError, match=r"must have at most 200 characters, .* has 201; give a shorter one"):
            interop.load_inline("x = 1\n", name="a" * 201)

    def test_a_path_that_is_not_in_utf_8(self, tmp_path):
        folder = tmp_path / "caf\udce9"
        folder.mkdir()
        (folder / "unnamed.pyx").write_text("x = 1\n")
        with pytest.raises(
            BuildError, match=r"must not contain '\\udce9', because it is written into the C\+\+; rename"
        ):
            interop.load(folder / "unnamed.pyx")

    def test_a_pyx_with_a_dash(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "my-module.pyx").write_text("x = 1\n")
        with pytest.raises(ValueError, match=r"got 'my-module' .*give one: load\('my_module', \['my-module\.pyx'\]\)"):
            interop.load("my-module.pyx")
        assert interop.load("my_module", ["my-module.pyx"]).x == 1

    def test_the_name_of_somebody_elses_module(self):
        with pytest.raises(ValueError, match=r"'json' belongs to a module that is imported already \(.*json"):
            interop.load_inline("x = 1\n", name="json")

    def test_a_path_as_a_text(self):
        with pytest.raises(ValueError, match=r"must be source code, got the path 'soft\.pyx'; for files, use load"):
            interop.load_inline("soft.pyx")

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (("no/such.pyx",), FileNotFoundError, "the source 'no/such.pyx' of module 'such' does not exist"),
            (("name",), ValueError, r"needs sources: load\('name', \['name.pyx'\]\)"),
            (("cimport torch\n",), ValueError, r"needs the path of a \.pyx, got 'cimport torch.*load_inline\(text\)"),
            (("name", ["a.txt"]), ValueError, r"must end in one of \.pyx, .*, got 'a\.txt'"),
            (("name", [__file__]), ValueError, r"must end in one of"),
            (("j.py",), ValueError, r"must end in one of .*, got 'j\.py'; to compile Python, rename it to 'j\.pyx'"),
            (("j.so",), ValueError, r"must end in one of .*, got 'j\.so'$"),
            (("name", [3]), TypeError, r"sources must be paths, got 3"),
            (("name", 3), TypeError, r"sources must be paths, got 3"),
            (("name", ["a\0.pyx"]), ValueError, r"sources must have no character NUL"),
            (("name", ["\ud800.pyx"]), ValueError, r"sources must be text that can be encoded, got '.ud800.pyx'"),
            ((3,), TypeError, r"name_or_path must be a name or a path, got 3"),
        ],
    )
    def test_sources_that_are_none(self, arguments, error, message):
        with pytest.raises(error, match=message):
            interop.load(*arguments)

    def test_two_pyx(self, tmp_path):
        for name in ("a", "b"):
            (tmp_path / f"{name}.pyx").touch()
        with pytest.raises(ValueError, match=r"a module must have one \.pyx"):
            interop.load("both", [tmp_path / "a.pyx", tmp_path / "b.pyx"])

    @pytest.mark.parametrize("source", [None, 3, b"x = 1"])
    def test_a_text_that_is_none(self, source):
        with pytest.raises(TypeError, match="cython_source must be a string"):
            interop.load_inline(source)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"extra_compile_args": "-O3"}, r"extra_compile_args must be a list of flags, .* got '-O3'"),
            (
                {"extra_compile_args": {"cxx": "-O3"}},
                r"extra_compile_args\['cxx'\] must be a list .* got '-O3'",
            ),
            ({"include_dirs": "include"}, r"include_dirs must be a list of folders, .* got 'include'"),
            ({"libraries": [3]}, r"libraries must be a list of names, .* got \[3\]"),
            ({"library_dirs": 3}, r"library_dirs must be a list of folders, .* got 3"),
            ({"define_macros": [(1, None)]}, r"define_macros must be a list of pairs of .* got \[\(1, None\)\]"),
            ({"define_macros": [("A", [])]}, r"define_macros must be a list of pairs of .* got \[\('A', \[\]\)\]"),
            (
                {"compiler_directives": {"language_level": []}},
                r"compiler_directives\['language_level'\] must be True, .* got \[\]",
            ),
            ({"define_macros": ["NAME"]}, r"define_macros must be a list of pairs of .* got \['NAME'\]"),
            ({"compiler_directives": ["boundscheck"]}, r"compiler_directives must be a dict, .* got \['boundscheck'\]"),
            ({"extra_cflags": ["-O3"]}, r"load_inline\(\) has no argument 'extra_cflags'; "),
            ({"include_dir": ["a"]}, r"load_inline\(\) has no argument 'include_dir'; did you mean 'include_dirs'\?"),
        ],
    )
    def test_options_that_are_none(self, options, message):
        with pytest.raises(TypeError, match=message):
            interop.load_inline("x = 1\n", **options)

    @pytest.mark.parametrize(
        "options",
        [
            {"extra_compile_args": ["-DX=\0"]},
            {"extra_compile_args": {"cxx": ["\ud800"]}},
            {"include_dirs": ["a\0"]},
            {"define_macros": [("X", "\ud800")]},
        ],
    )
    def test_options_that_no_command_line_can_have(self, options):
        (name,) = options
        with pytest.raises(
            ValueError, match=rf"{name}(\['cxx'\])? must (have no character NUL|be text that can be enc)"
        ):
            interop.load_inline("x = 1\n", **options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"define_macros": [("A", "1\n+2")]}, "no line breaks, got '1.n.2' for A"),
            ({"define_macros": [("A", float("inf"))]}, "finite numbers, got inf for A"),
            ({"define_macros": [("A", Decimal("NaN"))]}, "finite numbers, got Decimal"),
            ({"define_macros": [("A", Decimal("sNaN"))]}, "finite numbers, got Decimal"),
            ({"define_macros": [("A", np.float32("nan"))]}, "finite numbers, got .*nan"),
            ({"define_macros": [("A=5", None)]}, "names of C macros, got 'A=5'"),
            ({"extra_compile_args": [""]}, "no empty text"),
            ({"extra_compile_args": {"cxx": ["@flags.txt"]}}, r"no file of flags, .* shlex.split\(Path\('flags.txt'\)"),
            ({"extra_link_args": ["@flags.txt"]}, "no file of flags, got '@flags.txt'"),
            ({"extra_link_args": ["-Wl,@flags.txt"]}, "no file of flags, got '-Wl,@flags.txt'"),
        ],
    )
    def test_options_that_a_compiler_would_take_otherwise(self, options, message):
        (name,) = options
        with pytest.raises(ValueError, match=rf"{name}.* must have {message}"):
            interop.load_inline("x = 1\n", **options)

    def test_a_file_of_flags_in_the_source(self):
        with pytest.raises(ValueError, match="# distutils: extra_link_args must have no file of flags, got '@f"):
            interop.load_inline("# distutils: extra_link_args = @f.txt\nx = 1\n")

    def test_numbers_beyond_a_double(self):
        macros = [("A", Decimal("1e400")), ("B", Fraction(10**400, 3)), ("C", 10**400)]
        assert checked("load", {"define_macros": macros}) == {"define_macros": macros}

    def test_the_folder_of_a_file_beside(self):
        assert checked("load", {"include_dirs": [os.path.dirname("m.pyx")]}) == {"include_dirs": [os.getcwd()]}

    def test_a_truth_value_of_a_macro(self):
        macros = [("A", True), ("TWICE(x)", "((x) * 2)"), ("é$", None)]
        assert repr(checked("load", {"define_macros": macros})["define_macros"]) == repr([("A", 1), *macros[1:]])

    @pytest.mark.parametrize(
        "options",
        [
            {"define_macros": [("A", Decimal("1.5")), ("B", 2), ("C", np.float32(3)), ("D", Path("d"))]},
            {"compiler_directives": {"boundscheck": np.int64(0), "test_assert_path_exists": ["//DefNode"]}},
        ],
    )
    def test_options_of_other_types(self, options):
        assert checked("load", options) == options

    def test_a_text_that_no_file_can_have(self):
        with pytest.raises(ValueError, match=r"cython_source must be text .* got '.ud800' at position 5"):
            interop.load_inline("x = '\ud800'\n")

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ('# distutils: include_dirs = "\nx = 1\n', r"cython_source:1:1: in a comment .* must end with it"),
            (
                '# distutils: include_dirs = "a b"\n# distutils: libraries = "m\nx = 1\n',
                r"cython_source:2:1: in a comment .* must end with it",
            ),
            ("# coding: rot13\nx = 1\n", r"cython_source:1:11: 'rot13' is not a text encoding"),
        ],
    )
    def test_comments_that_cython_cannot_read(self, source, message):
        with pytest.raises(BuildError, match=message):
            interop.load_inline(source)

    def test_the_traceback_has_no_frames_of_the_build(self):
        """Those of a module that loads another while it is imported stay."""
        with pytest.raises(BuildError) as caught:
            interop.load_inline("cdef int x = \n")
        assert {Path(frame.filename).name for frame in traceback.extract_tb(caught.tb)[1:]} == {"loading.py"}
        with pytest.raises(BuildError) as caught:
            interop.load_inline("import interop\ndef inner():\n    interop.load_inline('cdef int x = ')\ninner()\n")
        assert "inner" in {frame.name.rpartition(".")[2] for frame in traceback.extract_tb(caught.tb)}

    def test_a_text_that_is_indented(self):
        source = """
            text = '''a
              b'''
            def f():
                return text
        """
        assert interop.load_inline(source, name="indented").f() == "a\n  b"
        kept = "text = '''a\n  \n'''\n"
        assert interop.load_inline(kept, name="not_indented").text == "a\n  \n"

    @pytest.mark.parametrize("folder", ["with space", "naïve-Ω", 'quote\'d "$HOME"'])
    def test_folders_with_any_name(self, tmp_path, folder):
        """A module loads from a folder with any name, and errors in that folder name the line."""
        place = tmp_path / folder
        place.mkdir()
        path = place / f"elsewhere_{len(folder)}.pyx"
        path.write_text('cdef extern from "two.h":\n    int two()\ndef f(): return two()\n')
        (place / "two.h").write_text("inline int two() { return 2; }\n")
        assert interop.load(path).f() == 2
        (place / "two.h").write_text("// nothing\n")
        # Before Cython 3.3 the compiler cannot read a line directive with a quotation mark in it.
        line = f"{re.escape(str(path))}:3:17: " if running() >= (3, 3) or '"' not in folder else ""
        with pytest.raises(BuildError, match=line + undeclared("two")):
            interop.load(path)


@pytest.mark.extended
class TestMachine:
    def test_no_compiler(self, monkeypatch):
        monkeypatch.setenv("CXX", "/no/such/compiler")
        error = error_of("x = 1\n")
        assert "the C++ compiler '/no/such/compiler' does not run (No such file or directory)" in str(error)
        assert "install g++" in str(error)
        assert "CXX" in str(error)

    def test_a_compiler_that_fails_otherwise(self, monkeypatch):
        monkeypatch.setenv("CXX", "false")
        assert "false ended with status 1" in str(error_of("x = 1\n"))

    def test_no_ninja(self, tmp_path, monkeypatch):
        """Only .cu files need ninja."""
        hide_ninja(tmp_path, monkeypatch)
        assert interop.load_inline("x = 1\n", name="without_ninja", force=True).x == 1

    def test_no_ninja_for_cuda(self, tmp_path, monkeypatch, toolkit):
        monkeypatch.setenv("CUDA_HOME", str(toolkit.home))
        hide_ninja(tmp_path, monkeypatch)
        (tmp_path / "kernels.pyx").write_text("x = 1\n")
        (tmp_path / "kernel.cu").write_text("__global__ void kernel() {}\n")
        with pytest.raises(BuildError, match="needs ninja; run: pip install ninja"):
            interop.load("kernels", [tmp_path / "kernels.pyx", tmp_path / "kernel.cu"])

    @pytest.mark.parametrize("place", ["file/cache", "/proc/cache"])
    def test_a_cache_that_cannot_be_written(self, tmp_path, monkeypatch, place):
        (tmp_path / "file").touch()
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path / place))
        with pytest.raises(BuildError, match=r"the cache cannot be written: /.*INTEROP_CACHE_DIR"):
            interop.load_inline("x = 1\n")

    @pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
    def test_a_file_system_without_locks(self, tmp_path, monkeypatch, code):
        """As Lustre is without an option, and NFS without its daemon."""

        def fail(*_):
            raise OSError(code, os.strerror(code))

        monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setattr(fcntl, "flock", fail)
        with pytest.raises(
            BuildError, match=rf"has no locks: {tmp_path}/cache/.* in the environment variable INTEROP_C"
        ):
            interop.load_inline("x = 1\n")

    def test_an_empty_name_of_a_compiler_is_none(self, monkeypatch):
        monkeypatch.setenv("CXX", "")
        monkeypatch.setattr(precompiled, "is_gcc", lambda: False)  # only to compile no headers for this test alone
        assert interop.load_inline("x = 1\n", name="without_cxx").x == 1

    @pytest.mark.parametrize("megabytes", [0, pytest.param(1, marks=with_precompiled_headers)])
    def test_a_full_disk(self, tmp_path, megabytes):
        """No file may grow beyond `megabytes`. With 0 nothing can be written, with 1 the compiler cannot write."""
        code = (
            "import resource, interop, interop.jit.build\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({megabytes} << 20,) * 2)\n"
            "try: interop.load_inline('x = 1')\n"
            "except interop.jit.BuildError as error: print(error)"
        )
        environment = os.environ | {"INTEROP_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert "there is no space to write" in done.stdout, done.stdout + done.stderr
        assert not list(tmp_path.glob("jit/modules/*/*"))

    @pytest.mark.parametrize("size", ["100k", pytest.param("20m", marks=with_precompiled_headers)])
    def test_the_disk_that_is_full(self, tmp_path, monkeypatch, size):
        """The disk is too small for anything, or for the precompiled header alone. No line of a source is blamed."""
        (tmp_path / "small").mkdir()
        mounting = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(tmp_path / "small")]
        if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True).returncode:
            pytest.skip("only root can mount a small disk, and not in every container")
        try:
            monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path / "small" / "cache"))
            error = error_of("x = 1\n")
        finally:
            subprocess.run(["umount", str(tmp_path / "small")], check=True)
        assert f"there is no space to write {tmp_path}/small/cache" in str(error)
        assert f"the disk at {tmp_path}/small has " in str(error)
        assert "MiB free; free some, for example with" in str(error)
        assert not error.diagnostics

    def test_no_room_for_temporary_files(self, tmp_path, monkeypatch):
        def room(path):
            return SimpleNamespace(free=(path != str(tmp_path)) << 30, total=1 << 30)

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.setattr(shutil, "disk_usage", room)
        job = SimpleNamespace(target=SimpleNamespace(name="m"), written=set())
        failed = CommandFailedError(("g++",), "No space left on device", 1)
        assert re.search(
            f"no space to write {tmp_path} .*; the disk at .* free; free some, or name another folder in TMPDIR$",
            str(build._explained(job, None, failed)),
        )
        monkeypatch.setattr(tempfile, "tempdir", "/")
        assert f"no space to write {root()} " in str(build._explained(job, None, failed))

    def test_a_disk_that_a_source_calls_full(self):
        error = error_of("cdef extern from *:\n    '#error No space left on device'\n")
        assert "cython_source:" in str(error)
        assert "no space to" not in str(error)


@pytest.mark.extended
class TestCuda:
    @pytest.fixture
    def sources(self, tmp_path, toolkit, monkeypatch):
        """The sources of a module with a kernel. Without CUDA in torch, it is compiled but not run."""
        monkeypatch.setenv("CUDA_HOME", str(toolkit.home))
        (tmp_path / "touching.pyx").write_text(
            "from interop.cuda cimport Launch\n"
            'cdef extern from *:\n    "extern \\"C\\" int touch(void*);"\n    int touch(void* stream) noexcept nogil\n'
            "def launch():\n    cdef Launch launch = Launch()\n    launch.check(touch(NULL), b'touch')\n"
        )
        (tmp_path / "kernel.cu").write_text(
            '#include "interop/cuda/launch.cuh"\n#include "number.h"\n__global__ void kernel(int) {}\n'
            'extern "C" int touch(void* stream) { return interop::cuda::launch(kernel, 1, 32, stream, NUMBER); }\n'
        )
        (tmp_path / "number.h").write_text("#define NUMBER 1\n")
        return [tmp_path / "touching.pyx", tmp_path / "kernel.cu"]

    def test_kernels(self, sources, capfd):
        module = interop.load("jit_kernels", sources)
        if not torch.cuda.is_available():
            with pytest.raises(torch.AcceleratorError):
                module.launch()
        assert capfd.readouterr().out == ""
        sources[1].with_name("number.h").write_text("#define NUMBER nothing\n")
        with pytest.raises(BuildError, match=r"kernel\.cu:4:.* identifier \"nothing\" is undefined\n +extern"):
            interop.load("jit_kernels", sources)

    def test_they_are_left_out(self, sources, monkeypatch):
        monkeypatch.setenv("INTEROP_CUDA", "0")
        with pytest.raises(BuildError, match=r"it has \.cu sources, but INTEROP_CUDA=0"):
            interop.load("jit_kernels_left_out", sources)
