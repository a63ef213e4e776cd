"""Hints follow the tokens of a source: comments and strings are no code, and a cimport may give any name."""

import re

import pytest

from interop.cython.hints import hint
from interop.cython.translate import TranslationError, translate

pytestmark = pytest.mark.long

PYTHON = r"x is a torch\.Tensor, a Python object: .* x\.cdata"


def first_hint(folder, source, **options):
    """The hint of the first error in a source."""
    (folder / "m.pyx").write_text(source)
    with pytest.raises(TranslationError) as raised:
        translate(str(folder / "m.pyx"), "m", folder / "m.cpp", declarations=folder / "declarations", **options)
    return raised.value.diagnostics[0].hint


class TestTokens:
    @pytest.mark.parametrize("text", ["'me@home'", "f'{1} me@home'", '"""me@\nme@home"""', "(1 # me@home\n)"])
    def test_an_operator_in_a_text(self, tmp_path, text):
        source = f"cimport torch\ndef f(torch.Tensor x):\n    print({text}, x.cdata)\n"
        assert first_hint(tmp_path, source).startswith("this is a C++ tensor; torch.wrap(")

    def test_a_declaration_in_a_string(self, tmp_path):
        source = 'cimport ATen as at\ndef f(x):\n    "torch.Tensor x"\n    cdef at.Tensor a = x\n'
        assert first_hint(tmp_path, source).startswith("this is a Python object: its C++ tensor is x.cdata for a ")

    @pytest.mark.parametrize(
        "source",
        [
            "cimport torch as th\ndef f(th.Tensor x): return torch.wrap(at.relu(x))\n",
            "def f(y):\n    cdef torch.Tensor x = y\n    return torch.wrap(at.relu(x))\n",
            "from torch cimport Tensor as T\ndef f(T x): return torch.wrap(at.relu(x))\n",
            "from torch cimport (wrap, # all of it\n    Tensor as T)\ndef f(T x): return wrap(at.relu(x))\n",
            "from torch cimport Tensor\ndef f(Tensor \\\n    x): return torch.wrap(at.relu(x))\n",
            "def f(torch.Tensor \\\n    x): return torch.wrap(at.relu(x))\n",
            "def f(torch . Tensor x):\n    def g(): pass\n    return torch.wrap(at. \\\n    add(\n        x, 1))\n",
            "cimport ATen as A; cimport torch as th\ndef f(th.Tensor x): return torch.wrap(A.add(x, 1, 2))\n",
            "cdef class C:\n    async def f(self, torch.Tensor x not None):\n        return torch.wrap(at.relu(x))\n",
        ],
    )
    def test_a_python_tensor(self, tmp_path, source):
        assert re.match(PYTHON, first_hint(tmp_path, f"cimport torch\ncimport ATen as at\n{source}"))

    @pytest.mark.parametrize(
        "source",
        [
            "def g(torch.Tensor x): pass\ndef f(x): at.relu(x)\n",
            "def f(x):\n    def g(torch.Tensor x): pass\n    at.relu(x)\n",
            "from torch cimport Tensor as T\nfrom ATen cimport Tensor\ndef f(x): at.relu(x)\n",
            "def f(x): at.relu(1 if x is torch.Tensor else x)\n",
        ],
    )
    def test_no_python_tensor(self, tmp_path, source):
        assert "is a torch.Tensor" not in (first_hint(tmp_path, f"cimport torch\ncimport ATen as at\n{source}") or "")

    @pytest.mark.parametrize(
        ("cimport", "call"),
        [
            ("cimport ATen as A", "A.sum(x.cdata, dim=1)"),
            ("from ATen cimport sum", "sum(x.cdata, dim=1)"),
            ("cimport ATen as at", "at.sum(x.cdata, \\\n    dim=1)"),
            ("cimport ATen", "x.cdata. \\\n    sum(dim=1)"),
        ],
    )
    def test_a_keyword(self, tmp_path, cimport, call):
        source = f"cimport torch\n{cimport}\ndef f(torch.Tensor x): return torch.wrap({call})\n"
        assert "take no keyword arguments: pass 'dim' by position" in first_hint(tmp_path, source)

    def test_a_list_of_tensors(self, tmp_path):
        source = "cimport torch\ncimport ATen as A\ndef f(torch.Tensor x): return torch.wrap(A.cat([x.cdata]))\n"
        assert "write a list of C++ tensors as tensors(a, b)" in first_hint(tmp_path, source)

    def test_a_source_that_ends_too_early(self):
        lines = ["cimport torch", "def f(torch.Tensor x):", "    at.add(x, 1, 2)", "    ('"]
        assert re.match(PYTHON, hint("no suitable method found (candidates: 8)", lines, 3, lines[2].index("(") + 1))

    @pytest.mark.parametrize("text", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
    def test_a_character_that_ends_no_line(self, text):
        """Neither for Cython nor for tokenize, but for str.splitlines()."""
        lines = [f"cimport torch  # {text}{text}", "", "def f(torch.Tensor x):", "    g(x)", "    at.relu(x)", ""]
        assert re.match(PYTHON, hint("no suitable method found (candidates: 8)", lines, 5, 12))

    @pytest.mark.parametrize(
        "line",
        ["cimport at", "cimport aten", "from torch cimport at", "from interop cimport at", "from torch cimport ATen"],
    )
    def test_aten_by_another_name(self, tmp_path, line):
        assert first_hint(tmp_path, f"{line}\n") == "the packages are called ATen and torch: cimport ATen as at"

    def test_a_form_feed_in_a_file(self, tmp_path):
        source = "# a\fb\ncimport torch\ncimport ATen as at\ndef f(torch.Tensor x):\n    torch.wrap(at.relu(x))\n"
        assert re.match(PYTHON, first_hint(tmp_path, source))


def errors_without_gil(folder, statements):
    """The errors of statements with an at.Tensor `x` and an at.SymInt `n` in a function that needs no GIL."""
    head = (
        "cimport ATen as at\ncimport torch\nfrom interop cimport check, tuple2\nfrom torch.library cimport Operator\n"
        "from libc.stdint cimport int64_t\nfrom libcpp.vector cimport vector\n"
        "cdef at.Tensor f(const at.Tensor& x, at.SymInt n, vector[double]& v) except * nogil:\n"
        "    cdef at.Tensor a, b\n"
    )
    (folder / "m.pyx").write_text(f"{head}    {statements}\n    return x\n")
    with pytest.raises(TranslationError) as raised:
        translate(str(folder / "m.pyx"), "m", folder / "m.cpp", declarations=folder / "declarations")
    return raised.value.diagnostics


class TestWithoutGil:
    """A mistake that is not about the GIL gets no hint about the GIL: Cython reports both."""

    @pytest.mark.parametrize(
        ("statement", "message", "expected"),
        [
            ("a, b = at.max(x, 0)", "Cannot convert 'tuple2", "get0(r), get1(r) and so on"),
            ("(a, b) = x.max(0)", "Cannot convert 'tuple2", "get0(r), get1(r) and so on"),
            ("cdef (at.Tensor, at.Tensor) r = at.max(x, 0)", "Cannot assign type 'tuple2", "get0(r), get1(r)"),
            (
                "cdef (at.Tensor, at.Tensor) r = Operator[(at.Tensor, at.Tensor)](b'a::b').call(x)",
                "Operator templated type receives 1",
                "write Operator[tuple2[at.Tensor, at.Tensor]], after: from interop cimport tuple2",
            ),
            (
                "return Operator[at.Tensor](b'a::b').call(x, other=x)",
                "function call got too many",
                "call() takes no keyword arguments: pass 'other' by position",
            ),
            ("a = at.arange(v, x.options())", "Converting to Python", "no overload takes this argument; the decl"),
            ("check(x.dim() > 1, f'dim {x.dim()}')", "", 'write check(n > 0, b"n must be positive, got ", n)'),
            ("check(x.dim() > 1, b'dim ', f'{x.dim()}')", "", 'write check(n > 0, b"n must be positive, got ", n)'),
            ("torch.wrap(x)", "", "this needs the GIL: move it out of the `with nogil` block"),
        ],
    )
    def test_the_cause(self, tmp_path, statement, message, expected):
        (found,) = errors_without_gil(tmp_path, statement)
        assert found.message.startswith(message)
        assert expected in found.hint


@pytest.mark.extended
class TestSymbols:
    @pytest.mark.parametrize(
        ("statement", "expected"),
        [
            ("n // 2", "write floordiv(a, b), after: from interop cimport floordiv"),
            ("2 % n", "write mod(a, b), after: from interop cimport mod"),
            ("a = at.where(x > 0, x, n / 2)", "write floordiv(n, 2), after"),
            ("cdef at.SymInt m = n / 2", "write floordiv(n, 2), after"),
            ("a = x * (n / 2)", "for a float, n / 2.0"),
            ("cdef at.SymFloat f = 2.0 * (1.0 / n)", "write f * 2.0 and f > 0.5, or at.SymFloat(2.0) - f"),
            ("cdef at.SymFloat f = 2 - (1.0 / n)", "write f * 2.0 and f > 0.5, or at.SymFloat(2.0) - f"),
            ("cdef bint c = 0.5 < 1.0 / n", "write f * 2.0 and f > 0.5"),
            ("cdef at.SymFloat f = n * (1.0 / n)", "write 1.0 * n, which is an at.SymFloat, for the at.SymInt"),
            ("max(n, 1)", "max() of an at.SymInt is its method: write n.max(1)"),
            ("a = at.empty_symint((min(x.sym_size(0), 1),))", "min() of an at.SymInt is its method: write n.min(1)"),
            ("n = n if x.dim() else 1", "both values of a conditional expression must be an at.SymInt"),
            ("cdef int64_t k = x.sym_size(0)", "declare the variable as an at.SymInt"),
            ("if n: pass", "for the truth value of an at.SymInt, write n != 0"),
            ("if not n: pass", "for the truth value of an at.SymInt, write n != 0"),
            ("if x.sym_sizes()[0]: pass", "for the truth value of an at.SymInt, write n != 0"),
            ("cdef double d = x.sym_size(0)", "write 1.0 * n, which is an at.SymFloat"),
            ("cdef double d = x.sym_sizes()[0]", "write 1.0 * n, which is an at.SymFloat"),
            ("for _ in range(n): pass", "a loop and Python need a number"),
            ("cdef vector[at.SymInt] w\n    w.push_back(3)", "make an at.SymInt of the number"),
            ("cdef int64_t k = n", "declare the variable as an at.SymInt"),
            ("a = at.select(x, 0, n)", "for an at.SymInt, write at.select_symint(...)"),
            ("a = x.select(0, n)", "for an at.SymInt, write x.select_symint(...)"),
            ("a = at.diag(x, n)", "diag() takes a number, which an at.SymInt need not be: x.size(0) is one"),
            ("a = x.diag(n)", "diag() takes a number, which an at.SymInt need not be: x.size(0) is one"),
            ("at.parallel_for(0, n, 1, NULL, NULL)", "parallel_for() takes a number"),
            ("n = n ** 2", "write n * n for n ** 2"),
            ("a = x * (1.0 / n) ** 0.5", "write f.sqrt() for f ** 0.5"),
            ("cdef bint c = x.sym_sizes() == a.sym_sizes()", "write x.sym_sizes().equals(y.sym_sizes())"),
            ("a = at.empty_symint([n, 2], x.options())", "write a tuple, at.empty_symint((n, 2))"),
            ("a = x.view_symint([2, x.sym_size(0)])", "write a tuple, at.empty_symint((n, 2))"),
            ("for _ in range(x.sym_sizes()[0]): pass", "a loop and Python need a number"),
        ],
    )
    def test_a_number(self, tmp_path, statement, expected):
        hint = errors_without_gil(tmp_path, statement)[0].hint
        assert expected in (hint or "")

    @pytest.mark.parametrize("condition", ["n < 0.5", "1.0 / n < n"])
    def test_a_size_and_a_float(self, tmp_path, condition):
        hints = [one.hint for one in errors_without_gil(tmp_path, f"cdef bint c = {condition}") if one.hint]
        assert hints == ["to compare an at.SymInt with a float, write 1.0 * n, which is an at.SymFloat"]


@pytest.mark.extended
class TestDeclarations:
    """If no overload accepts the arguments, the hint has those that there are, as the .pxd has them."""

    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            ("at.mm(x.cdata)", ["Tensor mm(CTensor& self, CTensor& mat2)", "Tensor mm[A](CTensor& self, "]),
            ("A.mm(x.cdata)", ["Tensor mm(CTensor& self, CTensor& mat2)", "Tensor mm[A](CTensor& self, "]),
            ("mm(x.cdata)", ["Tensor mm(CTensor& self, CTensor& mat2)", "Tensor mm[A](CTensor& self, "]),
            ("x.cdata.mm()", ["Tensor mm(CTensor& mat2)"]),
            ("at.matmul(x.cdata)", ["Tensor matmul(CTensor& self, CTensor& other)"]),
        ],
    )
    def test_a_call_with_too_few_arguments(self, tmp_path, call, expected):
        head = "cimport torch\ncimport ATen as at\ncimport ATen as A\nfrom ATen cimport mm\n"
        found = first_hint(tmp_path, f"{head}def f(torch.Tensor x): return torch.wrap({call})\n")
        assert found.startswith("the declarations are ")
        assert [one for one in expected if one not in found] == []

    def test_many(self, tmp_path):
        source = "cimport torch\ncimport ATen as at\ndef f(torch.Tensor x): return torch.wrap(at.std())\n"
        found = first_hint(tmp_path, source)
        assert found.count("std") == 4
        assert re.search(r"; and \d+ more$", found)

    @pytest.mark.parametrize("kind", ["int32_t", "uint16_t", "unsigned short"])
    def test_an_integer_as_close_to_int_as_to_bool(self, tmp_path, kind):
        source = "from libc.stdint cimport int32_t, uint16_t\ncimport torch\ncimport ATen as at\n"
        source += f"def f(torch.Tensor x, {kind} n): return torch.wrap(at.mul(x.cdata, {{}}n))\n"
        assert "cast a number" in first_hint(tmp_path, source.format(""))
        (tmp_path / "n.pyx").write_text(source.format("<int> "))
        translate(str(tmp_path / "n.pyx"), "n", tmp_path / "n.cpp", declarations=tmp_path / "declarations")

    def test_the_types_of_a_scalar_count_once(self, tmp_path):
        source = "cimport torch\ncimport ATen as at\ndef f(torch.Tensor x): return torch.wrap(at.linspace(0, 1))\n"
        found = first_hint(tmp_path, source)
        assert re.findall(r"linspace\S*\((\w+& start, \w+& end, int64_t steps)", found)
        assert "double" not in found

    def test_a_stable_module(self, tmp_path):
        """It has other declarations: those that torch keeps for many releases."""
        source = "cimport torch\ncimport ATen as at\ndef f(torch.Tensor x): return torch.wrap(at.mm(x.cdata))\n"
        assert "mm(CTensor& self, CTensor& mat2)" in first_hint(tmp_path, source, stable=True)

    @pytest.mark.parametrize(
        ("written", "instead"),
        [
            *((f"def f(torch.{name} d not None): pass", ", or leave the type") for name in ("device", "dtype", "Size")),
            ("def f():\n    cdef torch.InferenceMode m", r" \(n\.pyx"),
        ],
    )
    def test_a_name_that_only_other_modules_have(self, tmp_path, written, instead):
        (tmp_path / "n.pyx").write_text(f"cimport torch\n{written}\n")
        with pytest.raises(TranslationError, match=rf"have no torch\.\w+: build this one without stable{instead}"):
            translate(str(tmp_path / "n.pyx"), "n", tmp_path / "n.cpp", declarations=tmp_path / "d", stable=True)

    def test_another_function(self, tmp_path):
        source = "cdef extern from *:\n    void mm(int, int)\ndef f(): mm(1)\n"
        assert first_hint(tmp_path, source) is None
