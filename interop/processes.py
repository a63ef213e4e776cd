"""Commands that end with this process, however it ends.

A compiler starts other processes. Linux can signal a process at the end of its parent, but only the first process would
get that signal. A process group of their own would keep Ctrl-C from them. So a shell waits for the end of this process.
Then it ends all processes with a mark in their environment, which child processes inherit.
"""

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator

__all__ = ["end_with_parent", "ended_with_us"]

MARK = "INTEROP_PROCESS"

# It reads a line with the signal to send, or an empty line. At the end of the pipe, when nobody can write any more, it
# sends a second signal, to processes that had not started yet or ignore the first. The first lets them remove their
# files.
_WATCH = """
trap "" HUP INT QUIT TERM
read -r line && [ -z "$line" ] && exit
for signal in ${line:-TERM KILL}; do
    for file in $(grep -lsF "$1" /proc/[0-9]*/environ); do
        pid=${file#/proc/}
        kill -s $signal "${pid%/environ}"
    done
    [ -n "$line" ] || sleep 1
done
"""

_PR_SET_PDEATHSIG = 1

_ends: set[int] = set()
"""The ends of the pipes to the shells that only this process has, so that its end closes them."""


@contextlib.contextmanager
def ended_with_us() -> Iterator[dict[str, str]]:
    """Variables to add to the environment of commands that must end if this process ends before the context does."""
    mark = {MARK: secrets.token_hex(16)}
    read, write = os.pipe()
    _ends.add(write)
    try:
        with os.fdopen(read):
            shell = _watch(read, "=".join(*mark.items()))
        try:
            yield mark
        except BaseException as error:  # such as an exit
            _dismiss(shell, write, b"" if isinstance(error, Exception) else b"TERM")
            raise
        _dismiss(shell, write, b"")
    finally:
        if write in _ends:  # as in no child process
            _ends.discard(write)
            os.close(write)


def _watch(read: int, mark: str) -> subprocess.Popen[bytes] | None:
    null = subprocess.DEVNULL
    variables = {"PATH": os.environ.get("PATH", os.defpath)}
    with contextlib.suppress(OSError):  # without a shell, commands go on as usual
        return subprocess.Popen(
            ["sh", "-c", _WATCH, "sh", mark], stdin=read, stdout=null, stderr=null, cwd="/", env=variables
        )
    return None


def _dismiss(shell: subprocess.Popen[bytes] | None, write: int, last: bytes) -> None:
    """Let the shell end, after it has sent the signal `last`."""
    if shell and write in _ends:  # in a child process it is closed, and may be another file's by now
        with contextlib.suppress(OSError):
            os.write(write, last + b"\n")
        shell.wait()


def end_with_parent() -> None:
    """In a forked process: end it with the thread that forked it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _close_ends() -> None:
    """In a child process: it may live longer than its parent."""
    while _ends:
        os.close(_ends.pop())


os.register_at_fork(after_in_child=_close_ends)
