"""Modules compiled at run time: their names, when they are built again, and which builds wait for which."""

import contextlib
import gc
import json
import os
import pickle
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import traceback
import uuid
from pathlib import Path

import pytest
import torch
from conftest import with_precompiled_headers

import interop
from interop.garbage_collection import without_collections
from interop.jit import BuildError, build, cache_folder, importing, loading

pytestmark = pytest.mark.usefixtures("jit_cache")

TWICE = """\
cimport torch
cimport ATen as at

FACTOR = 2

cdef class Scale:
    cdef public double factor

def twice(torch.Tensor x not None):
    return torch.wrap(at.mul(x.cdata, 2.0))
"""


PLAIN = "def f(): return 2\n"  # g++ compiles this faster


def new():
    """A name that no module has had, so that a module of that name is built."""
    return f"new_{uuid.uuid4().hex}"


@pytest.fixture
def builds(monkeypatch):
    """The names of the modules that are built during the test."""
    names = []
    original = build.build

    def counting(target, *arguments):
        names.append(target.name)
        return original(target, *arguments)

    monkeypatch.setattr(build, "build", counting)
    return names


@pytest.fixture
def forget(monkeypatch):
    """Makes this process forget the modules that it has loaded, as if it were new."""

    def make_new():
        monkeypatch.setattr(importing, "_imports", {})

    return make_new


class TestLoad:
    def test_a_pyx_alone(self, tmp_path, builds):
        """A .pyx file alone is enough: no line in it says how to compile it."""
        (tmp_path / "doubling.pyx").write_text(TWICE)
        module = interop.load(tmp_path / "doubling.pyx")
        x = torch.randn(3, requires_grad=True)
        assert module.twice(x).equal(2 * x)
        assert module.twice(x).requires_grad
        assert (module.__name__, module.FACTOR) == ("doubling", 2)
        assert sys.modules["doubling"] is module
        assert interop.load(tmp_path / "doubling.pyx") is module
        assert builds == ["doubling"]

    def test_what_is_unchanged_is_found_by_the_next_process(self, tmp_path, bare):
        (tmp_path / "found.pyx").write_text(PLAIN)
        interop.load(tmp_path / "found.pyx")
        code = (
            "import sys, torch, interop\n"
            f"module = interop.load({str(tmp_path / 'found.pyx')!r})\n"
            "print(module.f(), [n for n in sys.modules if n.startswith('Cython.C')])"
        )
        assert bare(code) == "2 []\n"

    def test_an_edit_is_seen_beside_what_was_loaded_before(self, tmp_path):
        path = tmp_path / "edited.pyx"
        path.write_text(TWICE)
        first = interop.load(path)
        path.write_text(TWICE.replace("2.0", "3.0").replace("FACTOR = 2", "FACTOR = 3"))
        second = interop.load(path)
        x = torch.ones(1)
        assert (first.twice(x).item(), second.twice(x).item()) == (2, 3)
        assert (first.FACTOR, second.FACTOR) == (2, 3)
        assert sys.modules["edited"] is second
        assert second.Scale is not first.Scale
        assert type(pickle.loads(pickle.dumps(second.Scale()))) is second.Scale

    def test_names_of_cpp_stay_in_their_module(self):
        """Static variables of inline functions are hidden. Otherwise all modules would share one."""
        count = "template <class T> inline T& number() {{ static T value = {}; return value; }}\n"
        pyx = 'cdef extern from *:\n    int& number "number<int>"()\ndef f(): return number()\n'
        modules = [interop.load_inline(pyx, count.format(value), name="statics") for value in (1, 2)]
        assert [module.f() for module in modules] == [1, 2]

    @pytest.mark.parametrize("what", ["cimported", "included", "header", "own"])
    def test_a_change_in_what_is_read(self, tmp_path, builds, forget, what):
        (tmp_path / "helper.pxd").write_text('from other cimport two\ncdef extern from "helper.h":\n    int three()\n')
        (tmp_path / "other.pxd").write_text("cdef inline int two(): return 2\n")
        (tmp_path / "more.pxi").write_text("def one(): return 1\n")
        (tmp_path / "helper.h").write_text('#include "deep.h"\n')
        (tmp_path / "deep.h").write_text("inline int three() { return 3; }\n")
        path = tmp_path / f"reading_{what}.pyx"
        path.write_text("from helper cimport two, three\ninclude 'more.pxi'\ndef f(): return one(), two(), three()\n")
        assert interop.load(path).f() == (1, 2, 3)
        changed = {"cimported": "other.pxd", "included": "more.pxi", "header": "deep.h", "own": f"reading_{what}.pxd"}[
            what
        ]
        old = (tmp_path / changed).read_text() if what != "own" else None
        new = "cdef int unused\n" if what == "own" else old.replace("return ", "return 10 + ")
        (tmp_path / changed).write_text(new)
        forget()
        expected = {"cimported": (1, 12, 3), "included": (11, 2, 3), "header": (1, 2, 13), "own": (1, 2, 3)}[what]
        assert interop.load(path).f() == expected
        assert builds == [path.stem] * 2
        if what != "own":
            (tmp_path / changed).write_text(old)  # the earlier build still exists
            assert interop.load(path).f() == (1, 2, 3)
            assert builds == [path.stem] * 2

    @with_precompiled_headers
    def test_headers_that_every_module_includes_are_read_precompiled(self):
        """g++ uses the precompiled headers. It prints nothing when it cannot."""
        folder = Path(interop.load_inline(TWICE, name="precompiled").__file__).parent
        (read,) = (path.read_text() for path in folder.glob("*.o.d"))
        assert "Python.h" in read
        assert "ATen/core/Tensor.h" not in read  # it would be listed otherwise

    def test_an_edit_that_cimports_more(self, tmp_path):
        """An edit may add a cimport, although Cython caches the cimports of a file for the whole process."""
        (tmp_path / "extra.pxd").write_text(
            "cimport ATen as at\ncdef inline at.Tensor f(const at.Tensor& x): return at.cosh(x)\n"
        )
        path = tmp_path / "growing.pyx"
        path.write_text("cimport torch\ndef g(torch.Tensor x not None): return x\n")
        assert interop.load(path).g(torch.zeros(1)).item() == 0
        path.write_text(
            "cimport torch\nfrom extra cimport f\ndef g(torch.Tensor x not None): return torch.wrap(f(x.cdata))\n"
        )
        assert interop.load(path).g(torch.zeros(1)).item() == 1

    def test_other_flags_are_another_module(self, tmp_path, builds):
        (tmp_path / "flags.pyx").write_text("cdef extern from *:\n    int NUMBER\ndef f(): return NUMBER\n")
        modules = [interop.load(tmp_path / "flags.pyx", define_macros=[("NUMBER", n)]) for n in ("1", "2", "1")]
        assert [module.f() for module in modules] == [1, 2, 1]
        assert modules[0] is modules[2]
        assert builds == ["flags"] * 2

    def test_several_sources(self, tmp_path):
        (tmp_path / "many.pyx").write_text(
            'cdef extern from "sum.h":\n    int sum(int, int)\ndef f(): return sum(1, 2)\n'
        )
        (tmp_path / "sum.h").write_text("int sum(int a, int b);\n")
        (tmp_path / "sum.cpp").write_text('#include "sum.h"\nint sum(int a, int b) { return a + b + OFFSET; }\n')
        module = interop.load(
            "many_sources", [tmp_path / "many.pyx", tmp_path / "sum.cpp"], define_macros=[("OFFSET", "10")]
        )
        assert (module.__name__, module.f()) == ("many_sources", 13)

    def test_numpy_and_lines_for_distutils(self, tmp_path):
        (tmp_path / "arrays.pyx").write_text(
            "# distutils: define_macros=NUMBER=5\n# distutils: sources=number.cpp\n"
            "cimport numpy as np\nnp.import_array()\n"
            'cdef extern from "number.h":\n    int number()\ndef f(np.ndarray x): return x.ndim, number()\n'
        )
        (tmp_path / "number.h").write_text("int number();\n")
        (tmp_path / "number.cpp").write_text("int number() { return NUMBER; }\n")
        import numpy as np

        assert interop.load(tmp_path / "arrays.pyx").f(np.ones((2, 3))) == (2, 5)

    def test_tracebacks_show_the_line_wherever_the_program_goes(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "raising.pyx").write_text("def f():\n    raise ValueError('here')\n")
        module = interop.load("raising.pyx")
        monkeypatch.chdir("/")
        with pytest.raises(ValueError, match="here") as raised:
            module.f()
        assert "    raise ValueError('here')\n" in "".join(traceback.format_exception(raised.value))

    @pytest.mark.extended
    def test_operators_of_an_edited_module_take_the_place_of_the_earlier_ones(self):
        source = (
            "cimport ATen as at\nfrom torch.library cimport define, impl\n"
            "cdef at.Tensor f(const at.Tensor& x) except * nogil: return at.mul(x, {})\n"
            'define("jit_test::f", "(Tensor x) -> Tensor")\nimpl("jit_test::f", "CPU", f)\n'
        )
        for factor in (2.0, 3.0):
            interop.load_inline(source.format(factor), name="registering")
            assert torch.ops.jit_test.f(torch.ones(1)).item() == factor


class TestFile:
    def test_it_imports_in_a_bare_process(self, bare):
        """The module can be imported from its folder in a process that has not imported torch."""
        path = Path(interop.load_inline(TWICE, name="by_path").__file__)
        code = "import by_path, sys; print(by_path.twice(sys.modules['torch'].ones(1)).item(), by_path.__file__)"
        assert path.name.startswith("by_path.")
        assert bare(code, path.parent) == f"2.0 {path}\n"

    def test_another_torch_is_named(self, bare):
        path = Path(interop.load_inline(TWICE, name="by_path").__file__)
        code = (
            "import torch, interop.abi\ninterop.abi.NAME = 'torch_9_99'\n"
            "try: import by_path\nexcept ImportError as error: print(error)"
        )
        assert "was compiled for torch" in bare(code, path.parent)


class TestTogether:
    def test_threads_wait_for_one_build(self, builds):
        name, modules = new(), []
        threads = [
            threading.Thread(target=lambda: modules.append(interop.load_inline(PLAIN, name=name))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert builds == [name]
        assert len(modules) == 4
        assert len(set(modules)) == 1

    def test_processes_wait_for_one_build(self):
        name = new()
        command = [sys.executable, "-c", f"import interop; interop.load_inline({PLAIN!r}, name={name!r})"]
        started = [subprocess.Popen(command) for _ in range(3)]
        assert [process.wait(300) for process in started] == [0, 0, 0]
        assert len(list((cache_folder.root() / "modules").glob(f"{name}-*/*"))) == 1

    @pytest.mark.extended
    def test_a_build_that_was_killed_is_not_taken(self, builds):
        """Neither the files nor the lock of a killed build prevents the next one."""
        name = new()
        code = (
            "import os, signal, interop\nfrom interop.jit import build, manifest\n"
            "manifest.write = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
            f"interop.load_inline({PLAIN!r}, name={name!r})"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == -9, done.stderr
        (left,) = (cache_folder.root() / "modules").glob(f"{name}-*/*")
        assert list(left.glob(f"{name}.*.so"))
        assert interop.load_inline(PLAIN, name=name).f() == 2
        assert builds == [name]
        assert not left.exists()

    @pytest.mark.parametrize("gone", ["module", "native.so"])
    @pytest.mark.extended
    def test_a_build_of_which_a_part_is_gone(self, builds, forget, gone):
        """A build is repeated if a file of it is gone, for example removed by a cleaner of old files."""
        name = new()
        module = Path(interop.load_inline(PLAIN, name=name).__file__)
        (module if gone == "module" else module.with_name(gone)).unlink()
        forget()
        assert interop.load_inline(PLAIN, name=name).f() == 2
        assert builds == [name] * 2

    @pytest.mark.usefixtures("own_cache")  # other tests link with the shared part
    @pytest.mark.extended
    def test_a_shared_part_that_is_gone(self, builds):
        interop.load_inline(PLAIN, name=new())
        for part in (cache_folder.root() / "support").glob("*/bootstrap.o"):
            part.unlink()
        assert interop.load_inline(PLAIN, name=new()).f() == 2

    @pytest.mark.extended
    def test_a_source_replaced_by_an_older_file_while_it_is_built(self, tmp_path, monkeypatch, builds, forget):
        name = new()
        path, older = tmp_path / f"{name}.pyx", tmp_path / "older"
        path.write_text(PLAIN)
        older.write_text(PLAIN + "\n")
        os.utime(older, (1e9, 1e9))
        original = build.translate

        def replaced_meanwhile(*arguments, **options):
            result = original(*arguments, **options)
            if older.exists():
                older.replace(path)
            return result

        monkeypatch.setattr(build, "translate", replaced_meanwhile)
        interop.load(path)
        forget()
        interop.load(path)
        assert builds == [name] * 2

    def test_a_lock_is_free_although_a_child_was_forked_with_it(self, tmp_path):
        path = tmp_path / "lock"
        with cache_folder.locked(path):
            child = os.fork()
            if child == 0:
                signal.pause()
        try:
            with cache_folder.try_lock(path) as free:
                assert free
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    @pytest.mark.extended
    def test_a_manifest_that_is_not_whole(self, builds, forget):
        name = new()
        record = Path(interop.load_inline(PLAIN, name=name).__file__).with_name("manifest.json")
        record.write_text(record.read_text()[:20])
        forget()
        with pytest.warns(UserWarning, match=f"rebuilt .*{name}-\\w+: its content was damaged"):
            interop.load_inline(PLAIN, name=name)
        assert builds == [name] * 2

    @pytest.mark.parametrize("part", ["module", "native.so"])
    @pytest.mark.extended
    def test_a_module_of_zeros(self, builds, forget, part):
        """A file of zeros of the same size, as a disk may leave it, is rebuilt: its import would end the process."""
        name = new()
        module = Path(interop.load_inline(PLAIN, name=name).__file__)
        damaged = module if part == "module" else module.with_name(part)
        zeros = bytes(damaged.stat().st_size)
        damaged.unlink()  # keeps the file that this process has loaded
        damaged.write_bytes(zeros)
        forget()
        with pytest.warns(UserWarning, match="was damaged"):
            assert interop.load_inline(PLAIN, name=name).f() == 2
        forget()
        assert interop.load_inline(PLAIN, name=name).f() == 2
        assert builds == [name] * 2
        assert not damaged.exists()

    @pytest.mark.extended
    def test_a_manifest_that_was_edited(self, builds, forget):
        """A manifest that names a missing file counts as damaged."""
        name = new()
        record = Path(interop.load_inline(PLAIN, name=name).__file__).with_name("manifest.json")
        record.write_text(json.dumps(json.loads(record.read_text()) | {"module": "no_such.so"}))
        forget()
        with pytest.warns(UserWarning, match="was damaged"):
            assert interop.load_inline(PLAIN, name=name).f() == 2
        assert builds == [name] * 2

    @pytest.mark.extended
    def test_a_file_in_the_place_of_a_folder(self, builds, forget):
        name = new()
        entry = Path(interop.load_inline(PLAIN, name=name).__file__).parents[1]
        shutil.rmtree(entry)
        entry.touch()
        forget()
        with pytest.warns(UserWarning, match=rf"{entry.name}: its content was damaged") as warned:
            assert interop.load_inline(PLAIN, name=name).f() == 2
        assert len(warned) == 1
        assert builds == [name] * 2

    @pytest.mark.parametrize("kind", ["objects", pytest.param("headers", marks=with_precompiled_headers), "support"])
    @pytest.mark.extended
    def test_a_shared_part_that_is_damaged(self, tmp_path, own_cache, kind):
        (tmp_path / "part.cpp").write_text("int part() { return 3; }\n")
        source = "cdef extern from *:\n    'int part();'\n    int part()\ndef f(): return part()\n"
        name = new()

        def load(count):
            """Loads the module from a changed source, for which all shared parts stay valid."""
            (tmp_path / "parts.pyx").write_text(source + "#" * count)
            return interop.load(name, [tmp_path / "parts.pyx", tmp_path / "part.cpp"])

        load(0)
        names = {"objects": "object.o", "headers": "precompiled.h.gch", "support": "bootstrap.o"}
        paths = (cache_folder.root() / kind).glob(f"*/{names[kind]}")
        path = max(paths, key=lambda one: one.parent.stat().st_mtime)  # the part used last
        size = path.stat().st_size
        path.unlink()  # it may be a link to a file that others use
        path.write_bytes(b"")
        os.truncate(path, size)
        with pytest.warns(UserWarning, match=f"/{kind}/.*damaged") as warned:
            assert load(1).f() == 3
        assert len(warned) == 1
        assert load(2).f() == 3

    @pytest.mark.extended
    def test_a_source_that_changes_while_it_is_built(self, tmp_path, monkeypatch, builds, forget):
        name = new()
        path = tmp_path / f"{name}.pyx"
        path.write_text(PLAIN)
        original = build.translate

        def edited_meanwhile(*arguments, **options):
            result = original(*arguments, **options)
            path.write_text(PLAIN)
            return result

        monkeypatch.setattr(build, "translate", edited_meanwhile)
        interop.load(path)
        monkeypatch.setattr(build, "translate", original)
        forget()
        interop.load(path)
        assert builds == [name] * 2

    def test_a_lock_whose_file_was_removed(self, tmp_path):
        """A thread that waited for a removed lock file locks the new one."""
        path, held = tmp_path / "lock", []
        with cache_folder.locked(path):
            waiting = threading.Event()
            thread = threading.Thread(target=lambda: held.append(self.hold(path, waiting)))
            thread.start()
            waiting.wait(60)
            path.unlink()
        thread.join(60)
        assert held == [True]

    @staticmethod
    def hold(path, waiting):
        with cache_folder.locked(path, wait=waiting.set), cache_folder.try_lock(path) as free:
            return path.exists() and not free


class TestInline:
    def test_cpp_that_comes_first(self):
        module = interop.load_inline(
            "cdef extern from *:\n    double half(double)\ndef f(x): return half(x)\n",
            "static double half(double x) { return x / 2; }\n",
        )
        assert module.f(3) == 1.5
        assert module.__name__.startswith("inline_")

    def test_the_same_text_under_two_names(self):
        first, second = (interop.load_inline("x = 1\n", name=name) for name in ("one_name", "other_name"))
        assert first is not second
        assert (first.__name__, second.__name__) == ("one_name", "other_name")

    def test_force(self, builds):
        modules = [interop.load_inline("x = []\n", name="forced", force=force) for force in (True, True, False)]
        assert builds == ["forced"] * 2
        assert modules[0].x is not modules[1].x
        assert modules[2] is modules[1]

    def test_annotations(self):
        module = interop.load_inline("def f(x): return x + 1\n", name="annotated", annotate=True)
        report = Path(module.__file__).with_name("annotated.html").read_text()
        assert "def f(x): return x + 1" in re.sub("<[^>]*>", "", report)

    @pytest.mark.parametrize("free_threaded", [True, False])
    def test_whether_it_needs_no_gil(self, free_threaded):
        module = interop.load_inline("x = 1\n", name="without_gil", free_threaded=free_threaded)
        cpp = Path(module.__file__).with_name("without_gil.cpp").read_text()
        # The last match is the module's own; those before it depend on a macro, which Cython 3.1 does not have.
        said = re.findall(r"(?:FREETHREADING_COMPATIBLE |SetGIL\(__pyx_m, )Py_MOD_GIL_(NOT_)?USED", cpp)
        assert bool(said[-1]) is free_threaded

    def test_an_import_that_fails_leaves_nothing(self):
        with pytest.raises(ZeroDivisionError):
            interop.load_inline("x = 1 / 0\n", name="failing_import")
        assert "failing_import" not in sys.modules


@pytest.mark.extended
def test_progress_on_a_terminal():
    """A build shows its steps on a terminal. If the module is already built, nothing is shown."""
    name = new()
    command = [sys.executable, "-c", f"import interop; interop.load_inline({PLAIN!r}, name={name!r})"]
    for steps in (("translating", "compiling", "linking"), ()):
        terminal, end = pty.openpty()
        with subprocess.Popen(command, stderr=end) as process:
            os.close(end)
            said = b""
            with contextlib.suppress(OSError):  # raised when the terminal's other end is closed
                while part := os.read(terminal, 1 << 16):
                    said += part
        os.close(terminal)
        assert process.returncode == 0, said
        for step in steps:
            assert f"{name}: {step}".encode() in said
        assert bool(said) == bool(steps)


def test_the_garbage_collector_goes_on_afterwards():
    """Collections resume after a build, also after an error and after builds that overlap."""
    with pytest.raises(BuildError):
        interop.load_inline("def f(:\n")
    assert gc.isenabled()
    with without_collections():
        with without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_public_names():
    assert interop.load is loading.load
    assert interop.load_inline is loading.load_inline
    assert issubclass(BuildError, RuntimeError)
