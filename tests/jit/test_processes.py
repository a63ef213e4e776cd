"""Compilers end with the process that started them, however it ends."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
import setuptools
from conftest import needs_stable
from torch.utils import cpp_extension

from interop import toolchain
from interop.build import BuildExtension
from interop.jit.cache_folder import locked
from interop.processes import MARK, ended_with_us, threads
from interop.toolchain import is_gcc

SLOW = """
constexpr long count() { long n = 0; for (long i = 0; i < 1000000000; ++i) n += i; return n; }
static_assert(count() != 1);
"""
OF_GCC = ["-fconstexpr-ops-limit=100000000000", "-fconstexpr-loop-limit=2000000000"]
FLAGS = OF_GCC if is_gcc() else ["-fconstexpr-steps=2147483647"]
LOAD = f"""
import interop
interop.load_inline("x = 1", {SLOW!r}, extra_compile_args={FLAGS!r})
"""
SETUP = f"""
import setuptools
from interop.build import BuildExtension, Extension
module = Extension("slow", ["slow.cpp"], extra_compile_args={FLAGS!r})
setuptools.setup(name="slow", ext_modules=[module], cmdclass={{"build_ext": BuildExtension}})
"""
STUBBORN = "trap '' TERM; exec sleep 1000"
"""exec keeps ignored signals ignored."""


def running(session):
    """The commands of the processes of a session, without zombies."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, number = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and state != "Z":
                found[int(folder.name)] = (folder / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue  # it has just ended
    return found


def ends(session):
    """Whether no process of a session is left. The second look sees a child that started during the first."""
    return not running(session) and not running(session)


def kill_all(session):
    for one in running(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def wait_until(condition, seconds=100):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_compiling(session):
    """g++ starts cc1plus; clang compiles in the process of its driver."""
    commands = running(session).values()
    compilers = (one for one in commands if re.match(rb"cc1plus|clang", os.path.basename(one.partition(b"\0")[0])))
    return any(b"-fconstexpr-" in one and b".gch" not in one for one in compilers)


@pytest.fixture
def started(tmp_path):
    """Starts Python in a new session, and waits until it compiles a source that takes long."""
    processes = []

    def start(*arguments):
        with open(tmp_path / "output", "wb") as output:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=tmp_path,
                stdout=output,
                stderr=output,
                start_new_session=True,
                # A shell starts background jobs with SIGINT ignored, and child processes inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # no other thread holds locks
            )
        processes.append(process)
        wait_until(lambda: is_compiling(process.pid) or process.poll() is not None, 300)
        assert process.poll() is None, (tmp_path / "output").read_text()
        return process

    yield start
    for process in processes:
        kill_all(process.pid)
        process.wait(60)


@pytest.mark.long
@pytest.mark.extended
class TestBuilds:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_load(self, jit_cache, started, number):
        process = started("-c", LOAD)
        process.send_signal(number)
        assert process.wait(60) == -number
        wait_until(lambda: ends(process.pid))

    def test_a_child_that_stays(self, jit_cache, started, tmp_path):
        """The compilers end although a child that was forked during the build lives on."""
        go, forked = tmp_path / "go", tmp_path / "forked"
        fork = f"""
import os, signal, threading, time
from pathlib import Path

def fork():
    while not Path({str(go)!r}).exists():
        time.sleep(0.1)
    if os.fork() == 0:
        Path({str(forked)!r}).write_text(str(os.getpid()))
        signal.pause()

threading.Thread(target=fork).start()
"""
        process = started("-c", fork + LOAD)
        go.touch()
        wait_until(lambda: forked.exists() and forked.read_text())
        process.kill()
        wait_until(lambda: [*running(process.pid)] == [int(forked.read_text())])

    def test_an_interrupt(self, jit_cache, started):
        """An interrupt, which a terminal sends to all processes of the group, ends the build."""
        process = started("-c", LOAD)
        os.killpg(process.pid, signal.SIGINT)
        wait_until(lambda: ends(process.pid))
        assert process.wait(60) in (-signal.SIGINT, 130)

    @needs_stable
    def test_an_interrupt_of_the_process_alone(self, tmp_path):
        """The load raises soon, ends its compilers, starts no other one, and leaves nothing in the cache."""
        compiler, log = tmp_path / "compiler", tmp_path / "log"
        real = shlex.join(toolchain.compiler())
        compiler.write_text(
            f'#!/bin/sh\ncase "$*" in *" -E "*) exec {real} "$@";; esac\necho "$*" >> {log}\nsleep 1000\n'
        )
        compiler.chmod(0o700)
        sources = [tmp_path / f"{index}.cpp" for index in range(10 * os.cpu_count())]
        for source in sources:
            source.write_text(SLOW)
        # A stable module needs no precompiled header, so more commands are waiting than run.
        code = f"import interop\ninterop.load('m', {[*map(str, sources)]}, stable='2.11')"
        variables = os.environ | {"CXX": str(compiler), "INTEROP_CACHE_DIR": str(tmp_path / "cache")}
        default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
        command = [sys.executable, "-c", code]
        with open(tmp_path / "output", "wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, env=variables, start_new_session=True, preexec_fn=default
            )
        try:
            wait_until(lambda: log.exists() or process.poll() is not None)
            assert process.poll() is None, (tmp_path / "output").read_text()
            process.send_signal(signal.SIGINT)
            assert process.wait(15) in (-signal.SIGINT, 130)
            wait_until(lambda: ends(process.pid), 15)
        finally:
            kill_all(process.pid)
            process.wait(60)
        assert (tmp_path / "output").read_text().rstrip().endswith("KeyboardInterrupt")
        assert len(log.read_text().splitlines()) <= os.cpu_count()
        assert not list((tmp_path / "cache" / "jit").glob("modules/*/*"))

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_setup(self, started, tmp_path, number):
        (tmp_path / "setup.py").write_text(SETUP)
        (tmp_path / "slow.cpp").write_text(SLOW)
        process = started("setup.py", "build_ext")
        process.send_signal(number)
        process.wait(60)
        wait_until(lambda: ends(process.pid))


class TestThreads:
    def interrupted(self, work, *, then=lambda: None):
        """The future of `work`, which got the commands of its build, after an interrupt of the thread that waits."""
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt), threads(1) as (pool, commands):  # noqa: PT012
            done, never = pool.submit(work, commands), pool.submit(pytest.fail, "it has started")
            then()
            raise KeyboardInterrupt
        assert time.monotonic() - begin < 15
        assert never.cancelled()
        return done

    @pytest.mark.parametrize("first", ["", "trap '' TERM"])
    def test_an_interrupt(self, tmp_path, first):
        """It ends a command that a thread waits for, also if that command ignores signals."""
        ready = tmp_path / "ready"

        def work(commands):
            command = ["/bin/sh", "-c", f"{first}\necho > {shlex.quote(str(ready))}\nexec sleep 1000"]
            return subprocess.run(command, env=os.environ | commands.mark).returncode

        assert self.interrupted(work, then=lambda: wait_until(ready.exists)).result() != 0

    def test_an_interrupt_while_a_thread_waits_for_a_lock(self, tmp_path):
        """Another process may hold the lock for a long time."""
        waiting = threading.Event()

        def work(commands):
            with locked(tmp_path / "lock", wait=waiting.set, stopped=commands.stopped):
                raise AssertionError("the lock is held")

        with locked(tmp_path / "lock"):
            done = self.interrupted(work, then=lambda: waiting.wait(60))
        assert isinstance(done.exception(), CancelledError)

    def test_no_command_starts_after_an_interrupt(self):
        """As that of a thread which was between two commands."""

        def work(commands):
            commands.stopped.wait(60)
            commands.check()

        assert isinstance(self.interrupted(work).exception(), CancelledError)

    def test_an_error(self):
        """The threads finish what they do, because other builds share it."""
        with pytest.raises(ValueError, match="wrong"), threads(1) as (pool, commands):  # noqa: PT012
            done = pool.submit(subprocess.run, ["sleep", "1"], env=os.environ | commands.mark)
            raise ValueError("wrong")
        assert done.result().returncode == 0


class TestMark:
    def test_what_is_left_running_goes_on(self):
        """A process that outlives the context goes on, as a compiler cache's server does, also after an error."""
        for failing in (False, True):
            try:
                with ended_with_us() as mark:
                    process = subprocess.Popen(["sleep", "1000"], env=os.environ | mark)
                    assert [*mark] == [MARK]
                    if failing:
                        raise ValueError
            except ValueError:
                assert failing
            time.sleep(1.5)
            assert process.poll() is None
            process.kill()
            process.wait(60)

    @pytest.mark.parametrize(("command", "number"), [("exec sleep 1000", signal.SIGTERM), (STUBBORN, signal.SIGKILL)])
    def test_an_exit(self, command, number):
        """SystemExit ends the processes when it leaves the context, before the process itself ends.

        A process that ignores SIGTERM, or is only starting, is killed soon after.
        """
        processes = []
        try:
            with pytest.raises(SystemExit), ended_with_us() as mark:  # noqa: PT012
                processes.append(subprocess.Popen(["/bin/sh", "-c", command], env=os.environ | mark))
                of_it = Path(f"/proc/{processes[0].pid}")
                wait_until(lambda: b"sleep" in (of_it / "cmdline").read_bytes().split(b"\0"))
                wait_until(lambda: MARK.encode() in (of_it / "environ").read_bytes())
                sys.exit(1)
            assert processes[0].wait(60) == -number
        finally:
            for process in processes:
                process.kill()
                process.wait(60)

    def test_the_environment_of_setuptools(self, monkeypatch):
        """The mark is set during the build alone, not for commands that the process starts later."""
        monkeypatch.setattr(cpp_extension.BuildExtension, "build_extensions", lambda _: seen.append(os.environ[MARK]))
        seen: list[str] = []
        command = BuildExtension(setuptools.Distribution())
        command.extensions = []
        command.build_extensions()
        assert seen
        assert MARK not in os.environ

    @pytest.mark.parametrize("path", ["", "/no/such/folder"])
    def test_without_a_search_path(self, path):
        """The processes end also if they were started by their paths, and PATH does not lead to a shell."""
        code = (
            "import signal, subprocess\nfrom interop.processes import ended_with_us\n"
            f"with ended_with_us() as mark:\n    subprocess.Popen([{shutil.which('sleep')!r}, '1000'], env=mark)\n"
            "    print('ready', flush=True)\n    signal.pause()"
        )
        command, variables = [sys.executable, "-c", code], os.environ | {"PATH": path}
        with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, env=variables) as process:
            try:
                assert process.stdout.readline() == b"ready\n"
                process.kill()
                process.wait(60)
                wait_until(lambda: ends(process.pid))
            finally:
                kill_all(process.pid)


@pytest.mark.long
def test_a_child_that_was_forked():
    """A forked child, such as those that run Cython, ends with its parent."""
    code = (
        "import os, signal, time\nfrom interop.processes import end_with_parent\n"
        "if not os.fork():\n    end_with_parent()\n    print('ready', flush=True)\nsignal.pause()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"ready\n"
        assert len(running(process.pid)) == 2
        process.kill()
        process.wait(60)
        wait_until(lambda: ends(process.pid))


@pytest.mark.long
def test_a_child_that_unwinds():
    """A child that leaves the context writes to no pipe: its end is closed, and another file may have the number."""
    code = (
        "import os\nfrom interop.processes import _ends, ended_with_us\nread, other = os.pipe()\n"
        "with ended_with_us():\n    (write,) = _ends\n    child = os.fork()\n    child or os.dup2(other, write)\n"
        "if child:\n    os.waitpid(child, 0)\n    os.close(other)\n    print(os.read(read, 10))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "b''\n"
