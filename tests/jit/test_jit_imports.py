"""Imports of modules compiled at run time: concurrent with other imports, after fork, and repeated."""

import sys
import textwrap
from pathlib import Path

import pytest
import torch

import interop

pytestmark = pytest.mark.usefixtures("jit_cache")

# A package whose body loads the module `inner`, and a module whose body imports that package. Each waits for the other.
PACKAGE = """
import meeting, interop
meeting.package.set()
assert meeting.module.wait(60)
inner = interop.load_inline({source!r}, name={name!r})
"""
OUTER = """
import meeting
meeting.module.set()
assert meeting.package.wait(60)
import package_in_a_circle
found = True
"""
MEETING = "import threading\npackage, module, finish = (threading.Event() for _ in range(3))\n"
THREADS = """
import threading, interop
from importlib import import_module

class Thread(threading.Thread):
    def run(self):
        self.result = self._target()

def run_both(*targets):
    threads = [Thread(target=target, daemon=True) for target in targets]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return [thread.result for thread in threads]
"""
SLOW = "import meeting\nmeeting.module.set()\nassert meeting.finish.wait(60)\nvalue = [3]\n"


@pytest.fixture
def limited(tmp_path, forked, monkeypatch):
    """Runs code in a new process with a time limit, which ends a deadlock."""

    def run(code):
        (tmp_path / "meeting.py").write_text(MEETING)
        return forked(textwrap.dedent(code), tmp_path, seconds=100)

    monkeypatch.chdir(tmp_path)  # the processes write there
    return run


@pytest.mark.extended
class TestThreads:
    def test_a_package_that_loads_and_a_module_that_imports_it(self, tmp_path, limited):
        """A load in the body of a package does not wait for the import of another module."""
        interop.load_inline("value = 2\n", name="inner_of_a_package")
        (tmp_path / "package_in_a_circle.py").write_text(
            PACKAGE.format(source="value = 2\n", name="inner_of_a_package")
        )
        said = limited(
            THREADS + f"outer, package = run_both(lambda: interop.load_inline({OUTER!r}, name='outer_of_a_package'),\n"
            "    lambda: import_module('package_in_a_circle'))\nprint(outer.found, package.inner.value)"
        )
        assert said == "True 2\n"

    def test_a_true_circle(self, tmp_path, limited):
        """One of the two gets the other before its import is complete, as with Python's own modules."""
        (tmp_path / "package_in_a_circle.py").write_text(PACKAGE.format(source=OUTER, name="outer_in_a_circle"))
        said = limited(
            THREADS + f"load = lambda: interop.load_inline({OUTER!r}, name='outer_in_a_circle')\n"
            "outer, package = run_both(load, lambda: import_module('package_in_a_circle'))\n"
            "print(outer is package.inner is load(), outer.found)"
        )
        assert said == "True True\n"

    def test_a_module_that_loads_itself(self):
        source = "import interop\nsource = {!r}\ninner = interop.load_inline(source.format(source), name='of_itself')\n"
        module = interop.load_inline(source.format(source), name="of_itself")
        assert module.inner is module

    def test_threads_get_one_module(self, limited):
        said = limited(
            THREADS + f"import meeting\nload = lambda: interop.load_inline({SLOW!r}, name='slow_for_threads')\n"
            "first, second, _ = run_both(load, load, lambda: meeting.module.wait(60) and meeting.finish.set())\n"
            "print(first is second, first.value)"
        )
        assert said == "True [3]\n"


@pytest.mark.extended
class TestFork:
    """A child process has one thread and inherits the locks in their current state."""

    FORK = """
    def in_child(function):
        child = os.fork()
        if child == 0:
            status = 1
            try: status = 0 if function() else 2
            finally: os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    """
    FORK = "import os\n" + textwrap.dedent(FORK)

    def test_while_another_thread_imports(self, limited):
        """The child can import other modules, and also the one that a thread of its parent imports."""
        interop.load_inline("value = 2\n", name="other_in_a_child")
        said = limited(
            THREADS + self.FORK + "import meeting\n"
            f"load = lambda: interop.load_inline({SLOW!r}, name='slow_for_a_child')\n"
            "thread = Thread(target=load, daemon=True)\nthread.start()\nmeeting.module.wait(60)\n"
            "print(in_child(lambda: interop.load_inline('value = 2\\n', name='other_in_a_child').value == 2))\n"
            "def again():\n    meeting.finish.set()\n    return load() is load() and load().value == [3]\n"
            "print(in_child(again))\nmeeting.finish.set()\nthread.join()\nprint(thread.result is load())"
        )
        assert said == "0\n0\nTrue\n"

    def test_while_another_thread_translates(self, limited):
        """The child can build, and its garbage collector is enabled."""
        said = limited(
            THREADS + self.FORK + "import gc, time\nfrom interop.cython import translate\n"
            "inside, original = threading.Event(), translate.compile_single\n"
            "def slowly(*arguments, **options):\n"
            "    inside.set()\n    time.sleep(0.2)\n    return original(*arguments, **options)\n"
            "translate.compile_single = slowly\n"
            "load = lambda name: interop.load_inline('value = 2\\n', name=name, force=True)\n"
            "thread = Thread(target=lambda: load('of_a_thread'), daemon=True)\nthread.start()\ninside.wait(60)\n"
            "print(in_child(lambda: gc.isenabled() and load('of_a_child').value == 2))\n"
            "thread.join()\nprint(thread.result.value, gc.isenabled())"
        )
        assert said == "0\n2 True\n"

    def test_a_lock_that_another_thread_had(self, tmp_path, limited):
        """A child does not hold the lock of its parent's thread after the parent is killed."""
        said = limited(
            THREADS + "import os, signal, time\nfrom pathlib import Path\nfrom interop.jit.cache_folder import locked\n"
            "parent, path = os.getpid(), Path('lock')\nheld = threading.Event()\n"
            "def hold():\n    with locked(path):\n        held.set()\n        time.sleep(1000)\n"
            "if os.fork() == 0:\n    os.setsid()\n"
            "    threading.Thread(target=hold, daemon=True).start()\n    held.wait(60)\n"
            "    middle = os.getpid()\n"
            "    if os.fork() == 0:\n"
            "        while os.getppid() == middle: time.sleep(0.01)\n"
            "        with locked(path): Path('taken').touch()\n"
            "        os._exit(0)\n"
            "    os.kill(middle, signal.SIGKILL)\n"
            "os.wait()\n"
            "limit = time.monotonic() + 60\n"
            "while not Path('taken').exists() and time.monotonic() < limit: time.sleep(0.01)\n"
            "print(Path('taken').exists())\n"
        )
        assert said == "True\n"


REGISTERING = """
cimport ATen as at
from torch.library cimport define, impl
cdef at.Tensor f(const at.Tensor& x) except * nogil: return at.mul(x, {factor})
define("jit_undone::f", "(Tensor x) -> Tensor")
impl("jit_undone::f", "CPU", f)
{more}
"""


def load_registering(factor, more=""):
    return interop.load_inline(REGISTERING.format(factor=factor, more=more), name="undone")


def registered_factor():
    return torch.ops.jit_undone.f(torch.ones(1)).item()


@pytest.mark.extended
class TestUndoneEdits:
    def test_operators_are_those_of_the_source(self):
        first = load_registering(2.0)
        assert load_registering(2.0) is first
        second = load_registering(3.0)
        assert registered_factor() == 3
        third = load_registering(2.0)
        assert registered_factor() == 2
        assert third is not first
        assert sys.modules["undone"] is third
        assert load_registering(2.0) is third
        assert load_registering(3.0) is not second
        assert registered_factor() == 3

    def test_after_an_edit_whose_import_failed(self):
        first = load_registering(2.0)
        with pytest.raises(ZeroDivisionError):
            load_registering(3.0, "1 / 0")
        assert sys.modules["undone"] is first
        load_registering(2.0)
        assert registered_factor() == 2

    def test_copies_do_not_pile_up(self):
        for _ in range(4):
            for factor in (2.0, 3.0):
                folder = Path(load_registering(factor).__file__).parent.parent
        assert len(list(folder.iterdir())) <= 4

    def test_what_registers_nothing_is_the_same_object(self):
        first, _, third = (interop.load_inline(f"x = {x}\n", name="undone_plain") for x in (1, 2, 1))
        assert first is third
        assert sys.modules["undone_plain"] is third


class TestNames:
    def test_two_files_of_one_stem(self, tmp_path):
        """The second load raises, because it would replace the first for pickles and registered operators."""
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "of_one_stem.pyx").write_text(f"where = {folder!r}\n")
        a, b = (tmp_path / folder / "of_one_stem.pyx" for folder in ("a", "b"))
        first = interop.load(a)
        with pytest.raises(ValueError, match=rf"the name 'of_one_stem' belongs to the module made from {a}; give an"):
            interop.load(b)
        assert sys.modules["of_one_stem"] is first
        assert interop.load("other_stem", [b]).where == "b"
        del sys.modules["of_one_stem"]
        assert interop.load(b).where == "b"
        with pytest.raises(ValueError, match="made from"):
            interop.load(a)

    def test_a_file_by_another_name(self, tmp_path):
        """A file counts as the same through a link, and after another source in the list."""
        (tmp_path / "a").mkdir()
        (tmp_path / "link").symlink_to("a")
        (tmp_path / "a" / "linked_stem.pyx").write_text("x = 1\n")
        (tmp_path / "a" / "first.cpp").write_text("int first() { return 1; }\n")
        paths = [tmp_path / folder / "linked_stem.pyx" for folder in ("a", "link")]
        assert [interop.load(path).x for path in paths] == [1, 1]
        assert interop.load("linked_stem", [tmp_path / "a" / "first.cpp", paths[0]]).x == 1

    def test_a_file_that_was_moved(self, tmp_path):
        old, new = tmp_path / "moved_stem.pyx", tmp_path / "elsewhere" / "moved_stem.pyx"
        old.write_text("x = 1\n")
        interop.load(old)
        new.parent.mkdir()
        old.rename(new)
        assert interop.load(new).x == 1

    def test_a_text_of_the_name_of_a_file(self, tmp_path):
        (tmp_path / "text_or_file.pyx").write_text("x = 1\n")
        interop.load_inline("x = 2\n", name="text_or_file")
        with pytest.raises(ValueError, match="belongs to the module made from source text; give another"):
            interop.load(tmp_path / "text_or_file.pyx")

    def test_a_name_that_was_taken_out(self):
        module = interop.load_inline("x = 1\n", name="taken_out")
        del sys.modules["taken_out"]
        assert interop.load_inline("x = 1\n", name="taken_out") is module
        assert sys.modules["taken_out"] is module
