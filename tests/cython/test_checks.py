"""Errors while Cython translates: guards that do nothing, unknown names, functions that need the GIL."""

import re
import subprocess
import sysconfig
import threading
from pathlib import Path

import pytest
from Cython import Utils
from Cython.Compiler import ExprNodes, Pipeline
from Cython.Compiler.Scanning import FileSourceDescriptor

import interop
from interop.__main__ import main
from interop.build import Extension, TranslationError, cythonize
from interop.cython import translate as translation
from interop.cython import unknown_names
from interop.cython.checks import checked
from interop.cython.guards import GUARDS, Guards

pytestmark = pytest.mark.long

IDLE = r"is declared but never assigned here, so this guard would do nothing; write: cdef "
LOST = r"would end with its statement; write: cdef [\w.]+ guard = "
GENERATOR = r"cannot be used in a generator or coroutine: its mode would leak out"
OUTSIDE = r"must be a local variable of a function; elsewhere its mode would leak out"
CAPTURED = r"cannot be used in an inner function, which would keep it: its mode would leak out"


HEAD = (
    "from torch cimport *\ncimport torch\ncimport torch as th\nfrom torch cimport NoGradGuard as Off\n"
    "from cython cimport floating\nfrom interop.cuda cimport Launch\nfrom c10.core.DeviceGuard cimport DeviceGuard\n"
)

REFUSED_GUARDS = {  # the error is in the marked line
    "two at once": (IDLE, "def f():\n    cdef torch.NoGradGuard a, b #!\n    a = torch.NoGradGuard()\n"),
    "in a block": (IDLE, "def f():\n    cdef:\n        int i\n        torch.NoGradGuard a #!\n    return 1\n"),
    "with a comment": (IDLE, "def f():\n    cdef torch.NoGradGuard a #! = torch.NoGradGuard()\n    'a = 1'\n"),
    "in a method": (IDLE, "cdef class C:\n    cdef int f(self):\n        cdef torch.NoGradGuard a #!\n"),
    "in a fused function": (IDLE, "cpdef f(floating x):\n    cdef torch.NoGradGuard a #!\n    return x\n"),
    "in a lambda's neighbour": (IDLE, "def f():\n    cdef torch.NoGradGuard a #!\n    return lambda a: a\n"),
    "without the GIL": (IDLE, "cdef void f() noexcept nogil:\n    cdef torch.NoGradGuard a #!\n"),
    "annotated": (IDLE, "def f():\n    a: torch.NoGradGuard #!\n"),
    "another name for the module": (IDLE, "def f():\n    cdef th.NoGradGuard a #!\n"),
    "another name": (IDLE, "def f():\n    cdef Off a #!\n"),
    "a ctypedef": (IDLE, "ctypedef torch.NoGradGuard Mode\ndef f():\n    cdef Mode a #!\n"),
    "assigned elsewhere": (
        IDLE,
        "def g():\n    a = 1\ndef f():\n    cdef torch.NoGradGuard a #!\n    def g():\n        a = 1\n"
        "def h():\n    a = 1\n",
    ),
    "only read": (IDLE, "def f():\n    cdef Launch a #!\n    a.check(0, b'')\n"),
    "only ended": (IDLE, "def f():\n    cdef DeviceGuard a #!\n    a.reset()\n"),
    "a statement": (LOST, "def f():\n    torch.NoGradGuard() #!\n"),
    "a statement of the module": (LOST, "torch.NoGradGuard() #!\n"),
    "after another": (LOST, "def f():\n    x = 1; Off() #!\n"),
    "a condition": (LOST, "def f(x):\n    if x: Off() #!\n"),
    "a statement over lines": (LOST, "def f():\n    torch.NoGradGuard( #!\n    )\n"),
    "its method": (LOST, "def f(torch.Tensor x):\n    Launch(x.cdata).check(0, b'') #!\n"),
    "its method in an expression": (LOST, "def f(torch.Tensor x):\n    s = <long>Launch(x.cdata).stream() #!\n"),
    "an argument": (LOST, "def f(torch.Tensor x):\n    f(<long>Launch(x.cdata).stream()) #!\n"),
    "a default": (LOST, "def f(x=torch.NoGradGuard()): #!\n    pass\n"),
    "one of two": (LOST, "def f(x):\n    cdef Off a\n    a = Off() if x else Off() #!\n"),
    "a context": (LOST, "def f():\n    with torch.NoGradGuard(): #!\n        pass\n"),
    "elements": (LOST, "def f():\n    return [torch.NoGradGuard() for _ in range(3)] #!\n"),
    "the result": (LOST, "cdef Off f():\n    return Off() #!\n"),
    "with new": (LOST, "def f():\n    cdef Off* a = new Off() #!\n    del a\n"),
    "in a generator": (GENERATOR, "def f():\n    cdef Off a = Off() #!\n    yield 1\n"),
    "in a generator, without a type": (GENERATOR, "def f():\n    a = Off() #!\n    yield 1\n"),
    "in a generator's branch": (
        GENERATOR,
        "def f(x):\n    cdef Off a #!\n    if x:\n        a = Off()\n        x = yield\n",
    ),
    "in a lambda's function": (
        GENERATOR,
        "def f():\n    cdef Off a = Off() #!\n    lambda: 1\n    yield from ()\n",
    ),
    "in a coroutine": (GENERATOR, "async def f(x):\n    cdef Off a = Off() #!\n    await x\n"),
    "in a coroutine with a context": (
        GENERATOR,
        "async def f(x):\n    cdef Off a = Off() #!\n    async with x:\n        pass\n",
    ),
    "in a coroutine with a loop": (
        GENERATOR,
        "async def f(x):\n    cdef Off a = Off() #!\n    async for y in x:\n        pass\n",
    ),
    "an attribute": (OUTSIDE, "cdef class C:\n    cdef Off a #!\n    def f(self): self.a = Off()\n"),
    "of the module": (OUTSIDE, "cdef Off a = Off() #!\n"),
    "in a lambda": (
        CAPTURED,
        "def f(torch.Tensor x):\n    cdef Launch a = Launch(x.cdata)\n    return lambda: a.check(0, b'') #!\n",
    ),
    "in a default of an inner function's": (
        CAPTURED,
        "def f():\n    cdef DeviceGuard a\n    a.set_index(0)\n"
        "    def g():\n        return lambda x=<long>a.original_device().index(): x #!\n",
    ),
    "in an inner function": (
        CAPTURED,
        "def f():\n    cdef Off a\n    def g():\n        nonlocal a\n        a = Off() #!\n    g()\n",
    ),
}

ALLOWED_GUARDS = {
    "words": '    # these rows yield the answer, and await\n    """\n    torch.NoGradGuard()\n    """\n    "Off()"\n',
    "a continuation": "    cdef torch.NoGradGuard b = \\\n        torch.NoGradGuard()\n",
    "brackets": "    cdef torch.NoGradGuard b = (\n        # yield\n        torch.NoGradGuard()\n    )\n",
    "without a type": "    b = torch.NoGradGuard()\n",
    "in a branch": "    cdef Off b\n    if x:\n        with nogil:\n            b = Off()\n",
    "declared without the GIL": "    with nogil:\n        b = Off()\n",
    "two at once": "    cdef Off b, c\n    b = Off(); c = Off()\n",
    "set": "    cdef DeviceGuard b\n    b.set_index(0)\n",
    "handed on": "    cdef DeviceGuard b\n    begin(b)\n",
    "a generator beside it": "    def g():\n        yield 1\n    lambda: (yield)\n    (i for i in range(3))\n",
    "a coroutine beside it": "    async def g(x):\n        await x\n",
    "an inner function with its own": "    def g():\n        cdef Off a = Off()\n    def h(a): return a\n",
    "after the end": "    return 1\n    cdef Off b = Off()\n",
    "in an inner function's default": "    cdef DeviceGuard b\n    b.set_index(0)\n"
    "    def g(s=<long>b.original_device().index()):\n        return s\n",
    "a word that is longer": "    NoGradGuards = 1\n    x.NoGradGuard()\n",
    "another's": "    cdef Mine.NoGradGuard b\n",
}

KINDS = (
    ("torch", "NoGradGuard", ""),
    ("torch", "AutoGradMode", "False"),
    ("torch", "InferenceMode", ""),
    ("interop.guards", "AutoDispatchBelowAutograd", ""),
    ("c10.core.DeviceGuard", "DeviceGuard", "tensor.device()"),
    ("c10.core.StreamGuard", "StreamGuard", "stream"),
    ("c10.cuda", "CUDAGuard", "tensor.device()"),
    ("c10.cuda", "OptionalCUDAGuard", "tensor.device()"),
    ("c10.cuda", "CUDAStreamGuard", "stream"),
    ("c10.cuda", "OptionalCUDAStreamGuard", "stream"),
    ("interop.cuda", "Launch", "tensor"),
)

UNKNOWN_NAMES = {  # each uses a name that does not exist
    "a call": "def f(at.Tensor t):\n    return at.sqare(t)\n",
    "on another line": "def f(at.Tensor t):\n    return (at\n        .sqare(t))\n",
    "a type": "def f(t):\n    cdef at.sqare u\n",
    "the type of an argument": "def f(at.sqare t): pass\n",
    "the type of a result": "cdef at.sqare f(): pass\n",
    "a type in another": "from libcpp.vector cimport vector\ncdef vector[at.sqare] f(): pass\n",
    "a type after one with types in it": (
        "from libcpp.vector cimport vector\ncdef vector[vector[int*]] v\ndef f(at.sqare t): pass\n"
    ),
    "an annotation": "def f(t: at.sqare): pass\n",
    "a cast": "def f(t): return <at.sqare>t\n",
    "a default": "def f(t=at.sqare): pass\n",
    "a decorator": "@at.sqare\ndef f(t): pass\n",
    "a base": "class C(at.sqare): pass\n",
    "in a lambda": "f = lambda: at.sqare\n",
    "in an inner function": "def f():\n    def g(): return [at.sqare for _ in range(3)]\n",
    "in a method": "cdef class C:\n    cdef f(self): return at.sqare\n",
    "between quotes": "def f(t): return f'at.one {at.sqare}'\n",
    "after a semicolon": "def f(t):\n    'at.one'; at.sqare(t)\n",
    "of a name in it": "def f(t): return at.sqare.other\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checks")


@pytest.fixture(autouse=True)
def project(folder, monkeypatch):
    """The current folder, the same for all tests, so that declarations are reduced less often."""
    monkeypatch.chdir(folder)
    return folder


def translate(text):
    Path("m.pyx").write_text(text)
    Utils.clear_function_caches()  # Cython caches what a file cimports
    cythonize("m.pyx", force=True)


def refused(text, mark="#!"):
    """The error message for a source. The error must be in the line with the mark."""
    with pytest.raises(SyntaxError) as raised:
        translate(text)
    source = Path(raised.value.filename).read_text().splitlines()
    assert mark in source[raised.value.lineno - 1]
    assert raised.value.text == source[raised.value.lineno - 1]
    return raised.value.msg


class TestGuards:
    @pytest.mark.parametrize("form", REFUSED_GUARDS)
    def test_one_that_would_not_do_what_it_says(self, form):
        message, text = REFUSED_GUARDS[form]
        assert re.search(message, refused(HEAD + text))

    def test_those_that_do(self):
        begin = (
            "cdef void begin(DeviceGuard& guard): pass\n"
            "cdef extern from *:\n    cppclass Mine:\n        cppclass NoGradGuard:\n            pass\n"
        )
        functions = (
            f"def f{number}(bint x=False):\n    cdef Off a = Off()\n{body}"
            for number, body in enumerate(ALLOWED_GUARDS.values())
        )
        translate(HEAD + begin + "".join(functions))

    @pytest.mark.parametrize(("module", "name", "argument"), KINDS)
    def test_kinds(self, module, name, argument):
        """Each guard is identified by its C++ class, under any name in Cython."""
        message = refused(f"cimport {module} as here\ndef f():\n    cdef here.{name} a #!\n    return 1\n")
        assert message.startswith("'a' is declared but never assigned here")
        assert message.endswith(f"write: cdef here.{name} a = here.{name}({argument})")

    def test_all_kinds(self):
        assert {kind.rpartition("::")[2] for kind in GUARDS} == {
            name for _, name, _ in KINDS if not name.startswith("Optional")
        }

    def test_a_class_of_the_same_name(self):
        translate(
            "cimport torch\ncdef class NoGradGuard:\n    cdef int x\ncdef class D:\n    cdef NoGradGuard held\n"
            "def f():\n    cdef NoGradGuard a\n    NoGradGuard().x\n    yield 1\n"
        )

    def test_declarations_of_cpp(self):
        """A C++ class may have a guard as a member, and a header may have one as a variable."""
        translate(
            "from torch cimport NoGradGuard\ncdef extern from 'x.h':\n    NoGradGuard guard\n"
            "    cppclass Holder:\n        NoGradGuard held\n    void take(NoGradGuard guard)\n"
        )

    def test_the_position(self):
        """The error is in the line of the type; tools mark its first word."""
        with pytest.raises(SyntaxError) as raised:
            translate("cimport torch\n\ndef f():\n    cdef torch.NoGradGuard \\\n        mode\n")
        error = raised.value
        assert (error.filename, error.lineno, error.offset) == ("m.pyx", 4, 5)
        assert error.text == "    cdef torch.NoGradGuard \\"

    @pytest.mark.parametrize("name", ["cimported.pxd", "included.pxi"])
    def test_in_another_file(self, name):
        Path(name).write_text(
            "from torch cimport NoGradGuard\ncdef inline int f() except -1:\n    cdef NoGradGuard a #!\n    return 1\n"
        )
        text = "include 'included.pxi'\n" if name.endswith("i") else "from cimported cimport f\nf()\n"
        assert re.search(IDLE, refused(text))


class TestFunctions:
    @pytest.mark.parametrize("declared", ["except *", "except +", "noexcept"])
    def test_a_kernel_that_needs_the_gil(self, declared, capsys):
        """Such a kernel is rejected: torch calls it without the GIL, and a template takes any function."""
        text = (
            "cimport ATen as at\nfrom torch.autograd cimport Context, Function\n"
            "from torch.library cimport impl, register_autograd\n"
            "cdef at.Tensor kernel(const at.Tensor& x) {declared}: return x\n"
            "cdef at.Tensor part(Context& ctx, const at.Tensor& x) {declared}: return x\n"
            "cdef Function[at.Tensor] function\n"
            "function.define('F', part, part)\n"
            "impl('a::b', 'CPU', kernel)\nregister_autograd('a::b', part)\n"
        )
        with pytest.raises(TranslationError):
            translate(text.format(declared=declared))
        assert re.findall(r"m.pyx:(\d+):\d+: torch calls this function without the GIL", capsys.readouterr().err) == [
            "7",
            "7",
            "8",
            "9",
        ]
        for held in ("nogil", "with gil"):
            translate(text.format(declared=f"{declared} {held}"))

    UNFIT = (  # functions, and calls of them
        "cdef inline floating one(floating x) {declared}: return x\n"
        "cdef void loop(char** d, const int64_t* s, int64_t n, floating* _) {declared}: pass\n"
        "cdef void loop2d(char** d, const int64_t* s, int64_t n, int64_t m, floating* _) {declared}: pass\n"
        "cdef void plain(char** d, const int64_t* s, int64_t n, void* _) {declared}: pass\n"
        "cdef void part(int64_t begin, int64_t end, void* _) {declared}: pass\n"
        "cdef void element(at.TensorIterator& part, void* _) {declared}: pass\n",
        "    elementwise(b'one', kernel(one[float], one[double]), x)",
        "    x = at.add(elementwise_out(b'one', x, kernel((one[float])), x), 1)",
        "    reduce(b'one', kernel(one[float]), x, 0)",
        "    it.for_each(dispatch(at.kFloat, b'loop', loop[float], loop[double]), NULL)",
        "    it.for_each(dispatch2d(at.kFloat, b'loop', loop2d[float]), NULL)",
        "    it.for_each(plain, NULL)",
        "    it.foreach_reduced_elt(element, NULL)",
        "    at.parallel_for(0, 1, 1, part, NULL)",
    )
    BEGIN = (
        "cimport ATen as at\nfrom interop cimport dispatch, dispatch2d, dispatch_part, elementwise, elementwise_out\n"
        "from interop cimport floating, kernel, reduce\n"
        "from libc.stdint cimport int64_t\nfrom torch.autograd cimport Context, Function\n"
        "from torch.library cimport impl, register_autograd, register_vmap\n"
    )

    def refusals(self, capsys, *lines):
        """The lines that Cython rejects, and the messages."""
        with pytest.raises(TranslationError):
            translate(self.BEGIN + "\n".join(lines) + "\n")
        text = Path("m.pyx").read_text().splitlines()
        found = re.findall(r"^m.pyx:(\d+):\d+: (.*)", capsys.readouterr().err, re.MULTILINE)
        return [(text[int(line) - 1], message) for line, message in found]

    def test_a_function_for_torchs_threads_that_needs_the_gil(self, capsys):
        """Such a function is rejected, also as a specialisation of a fused one, in a call within an expression."""
        functions, *calls = self.UNFIT
        begin = "cdef void f(at.Tensor x, at.TensorIterator it) except *:"
        refused = self.refusals(capsys, functions.format(declared="noexcept"), begin, *calls)
        assert list(dict.fromkeys(line for line, _ in refused)) == calls
        assert sum(line == calls[0] for line, _ in refused) == 2  # of two functions
        assert {message for _, message in refused} == {
            "torch calls this function without the GIL; declare it `nogil`, or `with gil`"
        }
        for held in ("nogil", "with gil"):
            lines = [self.BEGIN, functions.format(declared=f"noexcept {held}"), begin, *calls]
            translate("\n".join(lines) + "\n")

    def test_a_function_of_a_kernel_that_is_not_noexcept(self, capsys):
        """Such a function is rejected, because the loop does not check for errors between elements."""
        refused = self.refusals(
            capsys,
            "cdef inline float f(float x) except? -1 nogil: return x",
            "cdef inline int64_t g(int64_t x, int64_t y) except *: return x",
            "cdef void use(at.Tensor x):",
            "    elementwise(b'f', kernel(f), x)",
            "    reduce(b'g', kernel(g), x, 0)",
        )
        assert [message for _, message in refused] == [
            "a function of kernel() must be noexcept: cdef float f(float x) noexcept nogil",
            "torch calls this function without the GIL; declare it `nogil`, or `with gil`",
        ]

    def test_a_function_of_another_kind_than_dispatched(self, capsys):
        functions, *_ = self.UNFIT
        refused = self.refusals(
            capsys,
            functions.format(declared="noexcept nogil"),
            "cdef void ranges(int64_t begin, int64_t end, floating* data) noexcept nogil: pass",
            "cdef void use(at.TensorIterator it) except *:",
            "    it.for_each(dispatch(at.kFloat, b'x', loop2d[float]), NULL)",
            "    it.for_each(dispatch2d(at.kFloat, b'x', ranges[float]), NULL)",
            "    at.parallel_for(0, 1, 1, dispatch_part(at.kFloat, b'x', loop[float]), NULL)",
            "    at.parallel_for(0, 1, 1, dispatch(at.kFloat, b'x', ranges[float], ranges[double]), NULL)",
            "    at.parallel_for(0, 1, 1, ranges[float], NULL)",
        )
        loop = (
            "a function of dispatch() must have the parameters (char** data, const int64_t* strides, int64_t n, "
            "floating* _)"
        )
        found = list(dict.fromkeys(message for _, message in refused))
        assert found[0] == f"{loop}; for this one use dispatch2d()"
        assert found[1].endswith("int64_t n, int64_t m, floating* _); for this one use dispatch_part()")
        assert found[2].endswith("(int64_t begin, int64_t end, floating* _); for this one use dispatch()")
        assert found[3] == f"{loop}; for this one use dispatch_part()"
        assert found[-1] == (
            "the last parameter of a function that torch calls must be a void*; for this one use dispatch_part()"
        )

    TEMPLATES = (
        "cdef void loop(char** d, const int64_t* s, int64_t n, any_t* of) {declared}: pass\n"
        "cdef void loop2d(char** d, const int64_t* s, int64_t n, int64_t m, any_t* of) {declared}: pass\n"
        "cdef void part(int64_t begin, int64_t end, any_t* of) {declared}: pass\n"
        "cdef void named(int64_t begin, int64_t end, any_t* data) {declared}: pass\n"
        "cdef void one_of(int64_t begin, int64_t end, constant_t which, any_t* of) {declared}: pass\n"
        "cdef void of_floats(int64_t begin, int64_t end, floating* of) {declared}: pass\n"
        "cdef void use(at.TensorIterator it) except *:"
    )

    def test_a_function_that_cannot_be_instantiated(self, capsys):
        begin = (
            "from interop cimport AT_ALL_TYPES, any_t, constant_t, instantiate, instantiate2d, instantiate_part\n"
            "from interop cimport instantiate_part_with, instantiate_with"
        )
        calls = {
            "    it.for_each(instantiate(at.kFloat, b'x', loop2d, AT_ALL_TYPES), NULL)": "instantiate2d",
            "    it.for_each(instantiate2d(at.kFloat, b'x', part, AT_ALL_TYPES), NULL)": "instantiate_part",
            "    it.for_each(instantiate_with(1, 2, at.kFloat, b'x', loop, at.kFloat), NULL)": "instantiate",
            "    at.parallel_for(0, 1, 1, instantiate_part(at.kFloat, b'x', one_of, at.kFloat), NULL)": (
                "instantiate_part_with"
            ),
            "    at.parallel_for(0, 1, 1, instantiate_part(at.kFloat, b'x', of_floats[float]), NULL)": "dispatch_part",
            "    at.parallel_for(0, 1, 1, instantiate_part(at.kFloat, b'x', named, at.kFloat), NULL)": None,
            "    at.parallel_for(0, 1, 1, dispatch_part(at.kFloat, b'x', part), NULL)": "instantiate_part",
            "    at.parallel_for(0, 1, 1, part, NULL)": "instantiate_part",
        }
        templates = self.TEMPLATES.format(declared="noexcept nogil")
        refused = self.refusals(capsys, begin, templates, *calls)
        assert [line for line, _ in refused] == list(calls)
        for line, message in refused:
            other = calls[line]
            assert message.partition("; for this one use ")[2] == (f"{other}()" if other else "")
        assert refused[5][1] == (
            "a function of instantiate_part() must have the parameters (int64_t begin, int64_t end, any_t* of), "
            "with these types and the name `of`"
        )
        refused = self.refusals(
            capsys,
            begin,
            self.TEMPLATES.format(declared="noexcept"),
            "    it.for_each(instantiate(at.kFloat, b'x', loop, AT_ALL_TYPES), NULL)",
        )
        assert [message for _, message in refused] == [
            "torch calls this function without the GIL; declare it `nogil`, or `with gil`"
        ]

    def test_what_has_no_version_for_all_types(self, capsys):
        begin = (
            "from interop cimport any_t, scalar_t\n"
            "cdef void f(scalar_t* x, object y, any_t* of) except *:\n    cdef scalar_t i"
        )
        lines = {
            "    x[0] = x[1] ** -1": "a negative power",
            "    x[0] = divmod(x[1], x[2])[0]": "divmod() has no version",
            "    y.append(x[0])": "cannot become a Python object",
            "    x[0] = y": "a Python object cannot become a value",
            "    for i in range(7): x[0] += i": "a Python object cannot become a value",
        }
        refused = self.refusals(capsys, begin, *lines)
        assert [line for line, _ in refused] == list(lines)
        for line, message in refused:
            assert lines[line] in message

    def test_a_function_of_python(self, capsys):
        refused = self.refusals(
            capsys,
            "def f(x): return x",
            "cdef Function[at.Tensor] function",
            "function.define('F', f, f)",
            "impl('a::b', 'CPU', f)",
            "impl('a::b', 'CPU', lambda x: x)",
            "register_autograd('a::b', f)",
            "register_vmap('a::b', f)",
            "cdef void use(at.Tensor x): elementwise(b'f', kernel(f), x)",
            "cdef void iterate(at.TensorIterator it): it.for_each(f, NULL)",
        )
        what = ["forward, backward or jvp function"] * 2 + ["kernel"] * 2
        what += ["function of register_autograd", "rule for vmap", "function of kernel()", "function that torch calls"]
        assert [message for _, message in refused] == [
            f"a {name} must be a cdef function, but this is a Python object" for name in what
        ]


class TestNames:
    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("cimport ATen as at\ndef f(): at.tensor([1])\n", r"ATen has no 'tensor'"),
            ("cimport torch\ndef f(torch.Tensor x): torch.tanh(x)\n", r"torch has no 'tanh'; write at\.tanh"),
            (
                "cimport torch\ndef f(): torch.no_grad()\n",
                r"torch has no 'no_grad'; for Python's module, write: import torch",
            ),
            (
                "cimport torch\ndef f(): torch.float64\n",
                r"no 'float64'; the ScalarType is at\.kDouble, after: ",
            ),
            (
                "cimport torch\ndef f(): torch.cuda.init()\n",
                r"no 'cuda'; for Python's.*: from ATen\.cuda cimport",
            ),
            (
                "cimport ATen as at\ndef f(): at.cuda.init()\n",
                r"no 'cuda'; for C\+\+'s cuda, write: from ATen\.cuda",
            ),
            ("cimport ATen as at\ndef f(): at.float\n", r"ATen has no 'float'; the ScalarType is at\.kFloat"),
            (
                "cimport ATen as at\ndef f(): at.elementwise()\n",
                r"ATen has no 'elementwise'; write: from interop cimport elementwise \(",
            ),
            (
                "cimport ATen as at\ndef f(): at.current_stream()\n",
                r"ATen has no 'current_stream'; write: from interop\.stream cimport current_stream \(",
            ),
            (
                "cimport interop\ndef f(): interop.load()\n",
                r"the cimported interop has no 'load'; for Python's module, write: import interop \(",
            ),
            (
                "cimport torch\ndef f(): torch.indices()\n",
                r"torch has no 'indices'; write: from interop cimport indices; for Python's",
            ),
            ("import ATen as at\ndef f(): at.relu\n", r"no Python module ATen; write: cimport ATen as at"),
            ("from ATen import relu\n", r"no Python module ATen; write: cimport ATen as at"),
        ],
    )
    def test_a_name_of_another_module(self, code, message):
        with pytest.raises(SyntaxError, match=message):
            translate(code)
        package = code.split()[1]
        if package != "ATen" and code.startswith("cimport"):
            translate(f"import {package}\n{code}")

    def test_a_package_by_its_own_name(self):
        translate("cimport ATen\ncimport ATen.cuda\ndef f(): return ATen.cuda.is_available()\n")

    @pytest.mark.parametrize("form", UNKNOWN_NAMES)
    def test_positions(self, form):
        text = "cimport ATen as at\n" + UNKNOWN_NAMES[form]
        with pytest.raises(SyntaxError, match=r"ATen has no 'sqare'; did you mean at\.square\?") as raised:
            translate(text)
        error = raised.value
        assert error.filename == "m.pyx"
        assert error.text[error.offset - 1 :].startswith("sqare")
        assert text.splitlines()[error.lineno - 1] == error.text

    def test_variables_of_the_same_name(self):
        """A variable hides the module in its scope."""
        translate(
            "cimport ATen as at\ncimport torch\n"
            "def f(at): return at.nothing\n"
            "def g(x): return [at.nothing for at in x], (lambda torch: torch.nothing)\n"
            "def h(x):\n    for torch in x: torch.nothing\n    def inner(): return torch.nothing\n    return inner\n"
            "def i():\n    import torch\n    return torch.nothing\n"
        )
        assert "ATen has no 'nothing'" in refused(
            "cimport ATen as at\ndef f(at): return at.nothing\ndef g(): return at.nothing #!\n"
        )

    def test_words(self):
        translate(
            '"""at.nothing"""\ncimport ATen as at\n# at.nothing\ndef f(x):\n'
            "    '''\n    at.nothing()\n    '''\n    return 'at.nothing', x.at.nothing, f'at.nothing'\n"
        )

    def test_other_modules_of_ours(self):
        message = refused("cimport c10.core.Layout as layout\ndef f(): return layout.kStride #!\n")
        assert message == "the cimported c10.core.Layout has no 'kStride'; did you mean layout.kStrided?"

    @pytest.mark.parametrize("name", ["cimported.pxd", "included.pxi"])
    def test_in_another_file(self, name):
        Path(name).write_text("cimport ATen as at\ncdef inline f(): return at.sqare #!\n")
        text = "include 'included.pxi'\n" if name.endswith("i") else "from cimported cimport f\nf()\n"
        assert "ATen has no 'sqare'" in refused(text)

    def test_a_name_that_python_has(self):
        with pytest.raises(TranslationError, match=r"torch has no 'tensor'; for Python's module, write: import torch"):
            translate("cimport torch\ndef f(): return torch.tensor([1.0])\n")

    def test_letters_that_changed_places(self):
        message = refused("cimport ATen as at\ndef f(at.Tensor x): return at.tahn(x).item[double]() #!\n")
        assert message == "ATen has no 'tahn'; did you mean at.tanh?"

    def test_a_type_that_is_misspelt(self):
        with pytest.raises(TranslationError, match=r"torch has no 'Tensr'; did you mean torch\.Tensor\?"):
            translate("cimport torch\ndef f(torch.Tensr x): pass\n")


class TestTensors:
    @pytest.mark.parametrize("target", ["x.cdata", "self.held.cdata", "x.cdata, a"])
    def test_a_tensor_in_place_of_another(self, capfd, target):
        """The assignment is rejected: the other tensor has another Python object."""
        value = "x.cdata, 1" if ", " in target else "x.cdata"
        with pytest.raises(TranslationError):
            translate(
                "cimport torch\ncimport ATen as at\ncdef class C:\n    cdef torch.Tensor held\n"
                "    cdef at.Tensor cdata\n    def f(self, torch.Tensor x):\n        self.cdata = x.cdata\n"
                f"        {target} = {value}\n"
            )
        said = capfd.readouterr().err
        assert said.count("cannot be replaced") == 1
        assert "m.pyx:8:" in said

    @pytest.mark.parametrize("statement", ["t += 1", "t -= t", "x.cdata *= t", "v[0] /= 2.0"])
    def test_in_place_operators(self, capfd, statement):
        """They are rejected: an error in one would end the process."""
        with pytest.raises(TranslationError):
            translate(
                "cimport torch\ncimport ATen as at\nfrom libcpp.vector cimport vector\n"
                "cdef void f(torch.Tensor x, vector[at.Tensor]& v) except *:\n    cdef at.Tensor t = x.cdata\n"
                f"    {statement}\n"
            )
        said = capfd.readouterr().err
        assert "would end the process; write t = t " in said
        assert "cannot be replaced" not in said

    def test_numbers_in_place(self):
        translate("cimport ATen as at\ndef f(int n):\n    n += 1\n    return n\n")

    @pytest.mark.parametrize(("operator", "function"), [("//", "floordiv"), ("/", "floordiv"), ("%", "mod")])
    def test_symbols_in_place(self, capfd, operator, function):
        """They are rejected: C++ rounds towards zero."""
        with pytest.raises(TranslationError):
            translate(f"cimport ATen as at\ncdef void f(at.SymInt n) except *:\n    n += 1\n    n {operator}= 2\n")
        said = capfd.readouterr().err
        assert "m.pyx:4:" in said
        assert f"write n = {function}(n, k), after: from interop cimport {function}" in said

    @pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
    def test_symbolic_floats_in_place(self, capfd, operator):
        with pytest.raises(TranslationError):
            translate(f"cimport ATen as at\ncdef void f(at.SymFloat f) except *:\n    f {operator}= 2.0\n")
        assert f"write f = f {operator} g" in capfd.readouterr().err

    @pytest.mark.parametrize(
        "text",
        ['f"n is {n}"', '"n is " + str(n)', '"n is %d" % n', '"n is {}".format(n)', "s", 's or ""'],
    )
    @pytest.mark.parametrize("statement", ["check(n > 0, {})", "define({}, b'')", "cdef string c = {}"])
    def test_a_str_as_a_c_string(self, capfd, statement, text):
        """Cython has no message for it: each call would raise TypeError."""
        head = "from interop cimport check\nfrom torch.library cimport define\nfrom libcpp.string cimport string\n"
        source = f"{head}def f(int n, str s):\n    {statement.format(text)}\n"
        with pytest.raises(TranslationError):
            translate(source)
        said = capfd.readouterr().err
        assert "m.pyx:5:" in said
        assert "a str does not become a C string" in said
        assert ('check() joins the parts of a message: write check(n > 0, b"' in said) is statement.startswith("check")
        translate(f"# cython: c_string_type=unicode, c_string_encoding=utf8\n{source}")

    def test_what_becomes_a_c_string(self):
        translate(
            "from interop cimport check\ndef f(bytes b, o, str s):\n    check(o is None, 'a literal')\n"
            "    check(o is None, b)\n    check(o is None, s.encode())\n"
        )

    def test_what_is_no_tensor_of_python(self):
        translate(
            "cimport torch\ncimport ATen as at\ncdef class C:\n    cdef at.Tensor cdata\n"
            "def f(C c, o, torch.Tensor x not None):\n    c.cdata = x.cdata\n    o.cdata = 1\n    x.data = o\n"
        )


class TestCython:
    """What the checks need from Cython, and what happens if it is missing."""

    def test_a_step_that_is_missing(self, monkeypatch):
        original = Pipeline.create_pipeline
        monkeypatch.setattr(
            Pipeline,
            "create_pipeline",
            lambda *args, **options: [
                step for step in original(*args, **options) if type(step).__name__ != "AnalyseExpressionsTransform"
            ],
        )
        with pytest.raises(RuntimeError, match=r"has no AnalyseExpressionsTransform, so torch-interop cannot reject"):
            translate("cimport torch\n")

    def test_a_method_that_is_missing(self, monkeypatch):
        monkeypatch.delattr(ExprNodes.SimpleCallNode, "analyse_c_function_call")
        with pytest.raises(RuntimeError, match=r"no SimpleCallNode\.analyse_c_function_call"), checked():
            pass

    def test_another_tree(self, monkeypatch):
        """Another tree raises: without the check of guards a module may do other than its source says."""
        monkeypatch.setattr(Guards, "visit_FuncDefNode", lambda _, node: node.local_entries)
        with pytest.raises(
            RuntimeError, match=r"has no syntax tree of the form that Guards needs, so torch-interop cannot reject"
        ):
            translate("cimport torch\ndef f():\n    x = 1\n")

    def test_a_check_that_is_not_needed(self, monkeypatch):
        """Without our message for an unknown name, Cython still reports its own."""
        monkeypatch.delattr(unknown_names, "get_pxd_dir")
        with pytest.raises(TranslationError):
            translate("cimport ATen as at\ndef f(): return at.nothing\n")


class TestPaths:
    """Cython writes paths into comments and #line directives without escaping them."""

    @pytest.mark.parametrize(
        "named",
        [
            "s*/ static int pwn = 3; /*",
            "s*\\ static int pwn = 3; \\*",
            "a\nint pwn = 3;",
            "a\rb",
            "a??/b",
            "\x1b[2J",
            "a\u2028b",
            "caf\udce9",
        ],
        ids=ascii,
    )
    @pytest.mark.parametrize("what", ["source", "read", "declarations"])
    def test_what_would_end_a_comment(self, tmp_path, named, what):
        place = tmp_path / named
        place.mkdir(parents=True)
        (place / "used.pxd").write_text("cdef inline int two(): return 2\n")
        source = (place if what == "source" else tmp_path) / "m.pyx"
        source.write_text("from used cimport two\ndef f(): return two()\n" if what == "read" else "x = 1\n")
        build = str(place) if what == "declarations" else str(tmp_path / "build")
        with pytest.raises(TranslationError, match=r"must not contain '.*', because it is .* the C\+\+; rename '"):
            cythonize([Extension("m", [str(source)])], include_path=[str(place)], build_dir=build)
        assert not [*tmp_path.rglob("*.cpp")]

    @pytest.mark.parametrize("named", ["* with", "naïve-Ω", 'quote\'d "$HOME"', "a?b", "*a", "back\\slash"])
    def test_what_is_harmless(self, tmp_path, named):
        place = tmp_path / named
        place.mkdir(parents=True)
        (place / "m.pyx").write_text("def f(): return nothing\nnothing = 1\n")
        (extension,) = cythonize([Extension("m", [str(place / "m.pyx")])], build_dir=str(tmp_path / "build"))
        folders = [sysconfig.get_path("include"), *extension.include_dirs]
        command = ["c++", "-std=c++20", "-fsyntax-only", "-Wcomment", "-Wtrigraphs", *(f"-I{one}" for one in folders)]
        done = subprocess.run([*command, *extension.sources], capture_output=True, text=True, errors="replace")
        assert done.returncode == 0, done.stderr

    unforeseen = (
        "include u'used.pxd'\n",
        'include r"used.pxd"\n',
        'include """used.pxd"""\n',
        "x = 1; cimport used\n",
        "if 1: cimport used\n",
        "cimport libc.math \\\n as c, used\n",
        "x = 1; from used cimport two\n",
        "cimport first\n",  # which cimports `used` in such a way
    )
    """Sources that read a file that Cython's search of the text does not find."""

    @pytest.mark.parametrize("text", unforeseen, ids=repr)
    @pytest.mark.extended
    def test_a_file_that_is_read_where_nobody_looked(self, tmp_path, capsys, text):
        """Its path is checked, the names in it are declared, and a change of it causes a new translation."""
        source, output, used = tmp_path / "m.pyx", tmp_path / "m.cpp", tmp_path / "used.pxd"
        source.write_text(text + "def f(): return 1\n")

        def build(folder):
            (folder / "used.pxd").write_text(
                "cimport ATen as at\ncdef inline at.Tensor two(at.Tensor x): return at.erfinv(x)\n"
            )
            (folder / "first.pxd").write_text("x = 1; cimport used\n")
            command = ["cythonize", str(source), "--output", str(output), "--headers", str(tmp_path / "h")]
            status = main([*command, "--depfile", str(tmp_path / "d"), "--include", str(folder)])
            return status, capsys.readouterr().err

        place = tmp_path / "s*" / " static int pwn = 3; "
        place.mkdir(parents=True)
        status, error = build(place)
        assert (status, output.exists()) == (1, False)
        assert "must not contain '*/'" in error
        assert build(tmp_path) == (0, "")
        assert str(used) in (tmp_path / "d").read_text()

        def is_translated():
            started = []
            translation.translate(
                str(source),
                "m",
                output,
                declarations=tmp_path / "build",
                include_path=[str(tmp_path)],
                force=False,
                started=started.append,
            )
            return len(started) == 1

        assert [is_translated(), is_translated()] == [True, False]
        used.write_text("cdef inline int two() noexcept: return 2\n")
        assert [is_translated(), is_translated()] == [True, False]

    def test_a_folder_that_is_named_with_dots(self, tmp_path, monkeypatch):
        """Our declarations in it are recognised as ours, and exist only once."""
        (tmp_path / "m.pyx").write_text(
            "cimport torch\ncimport ATen as at\ndef f(): return torch.wrap(at.erfinv(at.Tensor()))\n"
        )
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        declarations = Path("..", "declarations")
        done = translation.translate("../m.pyx", "m", Path("../m.cpp"), declarations=declarations)
        assert [path for path in done.read if "declarations" in path] == []
        assert len([*declarations.iterdir()]) == 1

    def test_what_is_not_read_any_more(self, tmp_path):
        """A file that is no longer read may have errors."""
        source, included, output = tmp_path / "m.pyx", tmp_path / "a.pxi", tmp_path / "m.cpp"

        def read():
            done = translation.translate(str(source), "m", output, declarations=tmp_path / "build", force=False)
            return str(included) in done.read

        source.write_text("include u'a.pxi'\n")
        included.write_text("X = 1\n")
        assert read()
        source.write_text("Y = 2\n")
        included.write_text("include 'gone.pxi'\n")
        assert not read()

    def test_a_last_line_that_is_cut_short(self, tmp_path):
        """Such an output, as of a killed process, is written again."""
        (tmp_path / "m.pyx").write_text("include u'a.pxi'\n")
        (tmp_path / "a.pxi").write_text("X = 1\n")
        output = tmp_path / "m.cpp"
        for _ in range(2):
            translation.translate(str(tmp_path / "m.pyx"), "m", output, declarations=tmp_path / "build", force=False)
            assert output.read_text().endswith('a.pxi"]\n')
            output.write_text(output.read_text()[:-5])

    def test_cython_on_another_thread(self, tmp_path, monkeypatch):
        """Files that another thread reads in the meantime do not count."""
        (tmp_path / "m.pyx").write_text("x = 1\n")
        (tmp_path / "other.pyx").write_text("x = 1\n")
        opened = []

        def begun(_):
            def work():
                opened.append(FileSourceDescriptor(str(tmp_path / "other.pyx")).filename)

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        original = translation.compile_single
        monkeypatch.setattr(translation, "compile_single", lambda *a, **b: (begun(None), original(*a, **b))[1])
        done = translation.translate(str(tmp_path / "m.pyx"), "m", tmp_path / "m.cpp", declarations=tmp_path / "build")
        assert opened == [str(tmp_path / "other.pyx")]
        assert done.read == {str(tmp_path / "m.pyx")}

    def test_a_module_of_load(self, tmp_path):
        place = tmp_path / "s*/ static int pwn = 3; /*"
        place.mkdir(parents=True)
        (place / "m.pyx").write_text("x = 1\n")
        with pytest.raises(interop.jit.BuildError, match=r"must not contain '\*/'"):
            interop.load("another_name", [place / "m.pyx"])

    @pytest.mark.parametrize("how", ["source", "output"])
    def test_the_command(self, tmp_path, capsys, how):
        place = tmp_path / "s*" / "a"
        place.mkdir(parents=True)
        source, output = (
            (place / "m.pyx", tmp_path / "m.cpp") if how == "source" else (tmp_path / "m.pyx", place / "m.cpp")
        )
        source.write_text("x = 1\n")
        assert main(["cythonize", str(source), "--output", str(output), "--headers", str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert "must not contain '*/'" in error

    def test_the_name_of_a_module(self, tmp_path):
        (tmp_path / "m.pyx").write_text("x = 1\n")
        with pytest.raises(TranslationError, match=r"the name of a module must not contain '\*/'"):
            translation.translate(str(tmp_path / "m.pyx"), "a*/b", tmp_path / "m.cpp", declarations=tmp_path)

    def test_declarations_that_are_damaged(self, tmp_path):
        (tmp_path / "m.pyx").write_text("cimport ATen as at\ndef f(): at.zeros((2,))\n")
        for _ in range(2):
            cythonize([Extension("m", [str(tmp_path / "m.pyx")])], build_dir=str(tmp_path), force=True)
            for path in [*tmp_path.rglob("functions.pxd"), *tmp_path.rglob("functions.h")]:
                path.write_bytes(bytes(path.stat().st_size))
