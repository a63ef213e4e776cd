"""Commands that end with this process, however it ends.

A compiler starts other processes. Linux can signal a process when its parent dies, but only the first process would get
that signal. A separate process group would not receive Ctrl-C. So a shell waits until this process ends. It then ends
all processes that have a mark in their environment, which child processes inherit.
"""

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass

__all__ = ["Commands", "end_with_parent", "ended_with_us", "threads"]

MARK = "INTEROP_PROCESS"

# The shell sends signals at the end of the pipe, when this process has ended, or if it reads a line that is not empty.
# The first signal lets the processes remove their files. The second, KILL, is for processes that ignore the first or
# that are just starting: /proc shows no environment during execve. A subshell sends it, so that nobody waits for the
# second in between. Its parent has gone by then, and the first process of the machine or the container reaps it.
_WATCH = """
trap "" HUP INT QUIT TERM
read -r line && [ -z "$line" ] && exit
send() {
    for file in $(grep -lsF "$2" /proc/[0-9]*/environ); do
        pid=${file#/proc/}
        kill -s "$1" "${pid%/environ}"
    done
}
send TERM "$1"
(sleep 1 && send KILL "$1") &
"""

_PR_SET_PDEATHSIG = 1

_ends: set[int] = set()
"""The write ends of the pipes to the shells. Only this process has them, so they close when it ends."""


@contextlib.contextmanager
def ended_with_us() -> Iterator[dict[str, str]]:
    """Yields environment variables for commands that must end if this process ends before the context does."""
    mark = {MARK: secrets.token_hex(16)}
    read, write = os.pipe()
    _ends.add(write)
    try:
        with os.fdopen(read):
            shell = _watch(read, "=".join(*mark.items()))
        try:
            yield mark
        except BaseException as error:  # such as an exit
            _dismiss(shell, write, b"" if isinstance(error, Exception) else b"end them")
            raise
        _dismiss(shell, write, b"")
    finally:
        if write in _ends:  # not in a child process
            _ends.discard(write)
            os.close(write)


@dataclass(frozen=True)
class Commands:
    """The commands that the threads of `threads` run. They end together."""

    mark: dict[str, str]
    """Environment variables that each of the commands needs."""
    stopped: threading.Event
    """Set before the commands end. No thread may start another one then, or wait for a lock."""

    def check(self) -> None:
        """Raise CancelledError if the commands have been stopped."""
        if self.stopped.is_set():
            raise CancelledError


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[tuple[ThreadPoolExecutor, Commands]]:
    """Yields at most `number` threads that run commands, and what the commands need.

    An error waits for the threads, which finish what they do and what is queued. An interrupt or an exit ends their
    commands at once.
    """
    stopped = threading.Event()
    # The threads are joined last, because each of them waits for its command.
    with ThreadPoolExecutor(number) as pool, ended_with_us() as mark:
        try:
            try:
                yield pool, Commands(mark, stopped)
            except Exception:
                pool.shutdown()
                raise
        except BaseException as error:
            if not isinstance(error, Exception):
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
            raise


def _watch(read: int, mark: str) -> subprocess.Popen[bytes] | None:
    null = subprocess.DEVNULL
    # For grep and sleep. A compiler that the user names by its path needs no PATH.
    variables = {"PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath)))}
    with contextlib.suppress(OSError):  # without a shell, commands run as usual
        return subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "sh", mark], stdin=read, stdout=null, stderr=null, cwd="/", env=variables
        )
    return None


def _dismiss(shell: subprocess.Popen[bytes] | None, write: int, line: bytes) -> None:
    """Let the shell end. It first ends the processes if `line` is not empty."""
    if shell and write in _ends:  # in a child process it is closed, and may now be another file
        with contextlib.suppress(OSError):
            os.write(write, line + b"\n")
        shell.wait()


def end_with_parent() -> None:
    """Make this forked process end with the thread that forked it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _close_ends() -> None:
    """Close the pipes in a child process, which may outlive its parent."""
    while _ends:
        os.close(_ends.pop())


os.register_at_fork(after_in_child=_close_ends)
