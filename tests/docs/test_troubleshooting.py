"""Each message that docs/troubleshooting.md quotes is provoked and compared with the page."""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import FREE_THREADED, OTHER_ABI, OTHER_TORCH, run, with_own_gil
from doc_blocks import blocks
from scipy.cluster import _vq as vq

import interop
from interop import _bridges, _core, abi
from interop.build import cuda
from interop.jit import BuildError
from interop.paths import get_pxd_dir, get_source_dir

PAGE = "docs/troubleshooting.md"
QUOTED = {
    block.note.removeprefix("raises: "): block.code for block in blocks(PAGE) if block.note.startswith("raises: ")
}
HEAD = "cimport torch\ncimport ATen as at\n"
FUNCTION = HEAD + "\ndef f(torch.Tensor x not None):\n"
SOURCES = {
    "to-python": FUNCTION + "    return at.tanh(x.cdata)\n",
    "to-cpp": FUNCTION + "    return torch.wrap(at.tanh(x))\n",
    "name": FUNCTION + "    return torch.wrap(torch.empty((3,)))\n",
    "tuple": FUNCTION + "    cdef at.Tensor y\n    with nogil:\n        y = at.zeros(())\n    return torch.wrap(y)\n",
    "wrap": FUNCTION + "    with nogil:\n        return torch.wrap(at.tanh(x.cdata))\n",
    "crash": FUNCTION + "    s = 0.0\n    for i in range(3):\n        s += x.cdata[i]\n    return s\n",
    "nogil": HEAD + "from torch.library cimport define, impl\n\n"
    "cdef at.Tensor k(const at.Tensor& x) except *:\n    return at.neg(x)\n"
    'define("wrong::k", "(Tensor x) -> Tensor")\nimpl("wrong::k", "CPU", k)\n',
    "guard": FUNCTION + "    cdef torch.NoGradGuard g\n    return x\n",
    "c-string": "cimport torch\nfrom interop cimport check\n\n\ndef f(torch.Tensor x not None):\n"
    '    check(x.cdata.dim() == 2, f"x has {x.cdata.dim()} dimensions")\n',
    "symbols": FUNCTION + "    return torch.wrap(at.empty((x.cdata.sym_size(0), 3)))\n",
    "in-place": FUNCTION + "    cdef at.Tensor t = x.cdata, u = x.cdata\n    t += u\n    return x\n",
}
MODULE = """
cimport torch
cimport ATen as at
from interop cimport const_accessor2, elementwise, kernel

cdef inline float _half(float x) noexcept nogil:
    return x / 2

def half(torch.Tensor x not None):
    return torch.wrap(elementwise(b"halve", kernel(_half), x.cdata))

def dimensions(torch.Tensor x):
    return x.cdata.dim()

def first(float[::1] x):
    return x[0]

ctypedef fused real:
    float
    double

def total(real[:] x):
    return x[0] + x[1]

def dense_total(real[::1] x):
    return x[0] + x[1]

def backward(torch.Tensor x not None):
    x.cdata.backward()

def corner(torch.Tensor x not None):
    return const_accessor2[float](x.cdata, b"x")[0][0]
"""
REGISTERED = """
cimport ATen as at
from torch.library cimport define, impl

cdef at.Tensor k(const at.Tensor& x) except * nogil:
    return at.neg(x)

{}
impl("twice::k", "CPU", k)
"""


CONVERTS = """
from interop.bridges cimport to_numpy
cimport torch

def array(torch.Tensor x not None):
    return to_numpy(x.cdata)
"""


@pytest.fixture(scope="module")
def module(jit_cache):
    return interop.load_inline(MODULE, name="troubles")


def read_only():
    array = np.ones(3, dtype=np.float32)
    array.flags.writeable = False
    return array


def change_what_backward_needs():
    y = torch.ones(3, requires_grad=True) * 2
    z = (y * y).sum()
    interop.as_memoryview(y.detach())
    z.backward()


def use_twice():
    capsule = interop.to_dlpack(torch.ones(2))
    interop.from_dlpack(capsule)
    interop.from_dlpack(capsule)


def enabled(function, x):
    with interop.enable_buffer_protocol():
        function(x)


CALLS = {
    "abi": lambda m: abi.require(OTHER_ABI, "cells.ops"),
    "argument": lambda m: m.half([1.0]),
    "none": lambda m: m.dimensions(None),
    "engine": lambda m: m.backward(torch.ones(1, requires_grad=True) * 2),
    "grad": lambda m: interop.to_numpy(torch.ones(3, requires_grad=True)),
    "graph": lambda m: m.half(torch.ones(3, requires_grad=True)),
    "no-grad": lambda m: torch.ones(1).sum().backward(),
    "version": lambda m: change_what_backward_needs(),
    "read-only": lambda m: m.first(read_only()),
    "read-only-tensor": lambda m: enabled(m.first, torch.ones(1).expand(3)),
    "read-only-array": lambda m: interop.from_numpy(read_only()),
    "negative": lambda m: interop.from_numpy(np.arange(3.0)[::-1]),
    "byte-order": lambda m: interop.from_numpy(np.arange(3, dtype=">f8")),
    "conj": lambda m: interop.to_numpy(torch.ones(2, dtype=torch.complex64).conj()),
    "sparse": lambda m: interop.to_numpy(torch.ones(2, 2).to_sparse()),
    "meta": lambda m: interop.to_numpy(torch.ones(2, device="meta")),
    "bfloat16": lambda m: interop.as_memoryview(torch.ones(2, dtype=torch.bfloat16)),
    "protocol": lambda m: m.first(torch.ones(3)),
    "ndarray": lambda m: vq.vq(torch.ones(2, 2), torch.ones(2, 2)),
    "signature": lambda m: m.total(torch.ones(3)),
    "mismatch": lambda m: m.first(np.ones(3)),
    "rank": lambda m: m.first(np.ones((2, 3), dtype=np.float32)),
    "contiguous": lambda m: enabled(m.first, torch.ones(4)[::2]),
    "capsule": lambda m: use_twice(),
    "dtype": lambda m: m.corner(torch.ones(3, 3, dtype=torch.float64)),
    "dimensions": lambda m: m.corner(torch.ones(3)),
    "not-implemented": lambda m: m.half(torch.ones(2, dtype=torch.complex64)),
    "not-on-cuda": lambda m: interop.to_cuda_array_interface(torch.ones(2)),
}


def compare(key, message):
    """Compares a message with the page, in which "..." stands for text that differs between machines."""
    wanted = QUOTED[key].rstrip("\n").replace("for torch 2.11", f"for torch {OTHER_TORCH}")
    assert re.fullmatch(".*".join(map(re.escape, wanted.split("..."))), message), f"{message!r} is not {wanted!r}"


def last_line(code, *path, options=("-P",)):
    """The last line of stderr of a new process that fails."""
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": ":".join(map(str, path))})
    assert done.returncode
    return done.stderr.rstrip("\n").rpartition("\n")[2]


@pytest.mark.parametrize("key", CALLS)
def test_calls(key, module):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the page says which, and it is compared
        CALLS[key](module)
    compare(key, f"{raised.type.__name__}: {raised.value}")


@pytest.mark.parametrize(
    ("name", "tensor", "of_array"),
    [
        ("total", torch.ones(3, dtype=torch.int64), "No matching signature found"),
        ("total", torch.ones(3, 3), "No matching signature found"),
        ("dense_total", torch.ones(1).expand(3), "ndarray is not C-contiguous"),
        ("dense_total", torch.ones(6)[::2], "ndarray is not C-contiguous"),
    ],
    ids=["dtype", "rank", "expanded", "strided"],
)
def test_signatures(name, tensor, of_array, module):
    """The causes that the page names, and what the same call says about an array."""
    function = getattr(module, name)
    with pytest.raises(TypeError) as raised:
        enabled(function, tensor)
    compare("signature", f"TypeError: {raised.value}")
    with pytest.raises((TypeError, ValueError), match=of_array):
        function(interop.to_numpy(tensor))


@pytest.mark.usefixtures("jit_cache")
@pytest.mark.parametrize("key", SOURCES)
@pytest.mark.extended
def test_sources(key):
    with pytest.raises(BuildError) as raised:
        interop.load_inline(SOURCES[key], name="wrong")
    compare(key, str(raised.value).partition("\n")[2])


@pytest.mark.usefixtures("jit_cache")
def test_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError) as raised:
        interop.load_inline("def f(): pass\n", name="wrong", force=True)
    compare("compiler", str(raised.value))


@pytest.mark.parametrize(
    ("key", "source"), [("pxd", "cimport ATen as at\n"), ("attribute", "cimport torch\ncdef torch.Tensor x\n")]
)
def test_plain_cython(key, source, tmp_path):
    (tmp_path / "m.pyx").write_text(source)
    done = subprocess.run([sys.executable, "-m", "cython", "m.pyx"], cwd=tmp_path, capture_output=True, text=True)
    compare(key, re.search(r"^m\.pyx:\d+:\d+: (.*)$", done.stderr, re.MULTILINE)[1])


@pytest.mark.extended
def test_plain_cython_with_the_folder(tmp_path):
    (tmp_path / "m.pyx").write_text(HEAD)
    command = [sys.executable, "-m", "cython", "--cplus", "-I", get_pxd_dir(), "m.pyx"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for page in (PAGE, "docs/building-guide.md", "docs/cimport-guide.md"):
        assert "`cython --cplus -I $(interop-config --pxd)`" in Path(page).read_text(encoding="utf-8")


def test_isolation():
    compare("isolation", last_line("import interop", options=("-I", "-S")))


def test_checkout(tmp_path):
    """The message of an unbuilt checkout. An editable install's finder would find the missing file elsewhere."""
    package = Path(interop.__file__).parent
    shutil.copytree(package, tmp_path / "interop", ignore=shutil.ignore_patterns("*.so", "_build_info.py"))
    code = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'ditable' not in str(f)]; import interop"
    compare("checkout", last_line(code, tmp_path))


def test_package():
    code = (
        "import sys, types; info = types.ModuleType('info'); "
        f"info.ABI, info.TORCH = '{OTHER_ABI}', '{OTHER_TORCH}.0'\n"
        "sys.modules['interop._build_info'] = info; import interop"
    )
    compare("package", last_line(code))


def test_half_a_module(tmp_path):
    macros = [
        "-DINTEROP_INIT=PyInit_doubled",
        '-DINTEROP_MODULE="doubled"',
        f'-DINTEROP_ABI="{abi.NAME}"',
        '-DINTEROP_NATIVE="_doubled.so"',
    ]
    sources = [f"-I{sysconfig.get_path('include')}", Path(get_source_dir(), "bootstrap.cpp")]
    run(["c++", "-std=c++20", "-shared", "-fPIC", *macros, *sources, "-o", "doubled.abi3.so"], cwd=tmp_path)
    compare("half", last_line("import doubled", tmp_path))


@pytest.mark.parametrize(
    ("key", "source", "first"),
    [
        ("export", "", "torch, "),
        ("libc10", 'extern "C" void* PyInit_m() { return 0; }', ""),
        ("symbol", 'namespace c10 { void gone(); } extern "C" void* PyInit_m() { c10::gone(); return 0; }', "torch, "),
    ],
)
@pytest.mark.extended
def test_libraries(key, source, first, tmp_path):
    (tmp_path / "m.cpp").write_text(source)
    library = f"-L{Path(torch.__file__).parent / 'lib'}"
    run(["c++", "-shared", "-fPIC", "m.cpp", "-o", "m.abi3.so", library, "-Wl,--no-as-needed", "-lc10"], cwd=tmp_path)
    compare(key, last_line(f"import {first}m", tmp_path))


@pytest.mark.usefixtures("jit_cache")
@pytest.mark.extended
def test_an_operator_registered_twice():
    interop.load_inline(REGISTERED.format('define("twice::k", "(Tensor x) -> Tensor")'), name="first")
    with pytest.raises(RuntimeError) as raised:
        interop.load_inline(REGISTERED.format(""), name="second")
    compare("twice", f"RuntimeError: {raised.value}")


@pytest.mark.skipif(not FREE_THREADED, reason="this Python has a GIL, which nothing turns on")
@pytest.mark.extended
def test_the_gil_is_turned_on(jit_cache):
    code = "import interop; interop.load_inline('def f(): pass', name='m')"
    environment = with_own_gil(INTEROP_CACHE_DIR=str(jit_cache))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert " ".join(QUOTED["gil"].split()) in " ".join(done.stderr.split())


def without(part, prefix, monkeypatch):
    """Removes the shared attribute, as an upgrade does that increments the number in its name."""
    (name,) = (name for name in vars(part) if name.startswith(prefix))
    monkeypatch.delattr(part, name)


@pytest.mark.usefixtures("jit_cache")
@pytest.mark.extended
def test_operators_of_another_interop(monkeypatch):
    without(_core, "_runtime_", monkeypatch)
    with pytest.raises(ImportError) as raised:
        interop.load_inline(REGISTERED.format('define("twice::k", "(Tensor x) -> Tensor")'), name="older")
    compare("runtime", f"ImportError: {raised.value}")


@pytest.mark.usefixtures("jit_cache")
def test_converters_of_another_interop(monkeypatch):
    converts = interop.load_inline(CONVERTS, name="converts")
    with monkeypatch.context() as upgraded:
        without(_bridges, "_bridges_", upgraded)
        with pytest.raises(ImportError) as raised:
            converts.array(torch.ones(2))
    compare("bridges", f"ImportError: {raised.value}")
    assert converts.array(torch.ones(2)).tolist() == [1.0, 1.0]  # the failure was not cached


def test_mode_of_cuda(monkeypatch):
    monkeypatch.setenv("INTEROP_CUDA", "yes")
    with pytest.raises(Exception, match="INTEROP_CUDA") as raised:  # of setuptools, which prints its message
        cuda.cuda()
    compare("cuda", str(raised.value))


def test_every_message_is_provoked():
    others = {
        "attribute",
        "bridges",
        "cuda",
        "checkout",
        "compiler",
        "export",
        "gil",
        "half",
        "isolation",
        "libc10",
        "package",
        "pxd",
        "runtime",
        "symbol",
        "twice",
    }
    assert set(QUOTED) == set(CALLS) | set(SOURCES) | others
    quotes = [block for block in blocks(PAGE) if block.language == "text"]
    assert all(re.match(r"raises: |not provoked: .{15}", block.note) for block in quotes)
