"""Commands that end when this process does, however it ends.

A compiler starts others. A signal at the end of its parent, which Linux can send, goes to the first alone, and a group
of their own would take Ctrl-C from them. So a shell waits for the end of this process. Then it ends all processes that
have a mark in their environment, which each hands on to those that it starts.
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

# It reads a line with the signal to send, or with none; or to the end, where nobody can write one any more. Then it
# sends a second one, to what had not begun yet, or does not mind. The first lets them remove their files.
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
"""Those that only this process has of the pipes to the shells, so that its end closes them."""


@contextlib.contextmanager
def ended_with_us() -> Iterator[dict[str, str]]:
    """Variables to add to the environment of commands, which are ended if this process ends before the context does."""
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
    with contextlib.suppress(OSError):  # without a shell, commands go on as they would anyhow
        return subprocess.Popen(
            ["sh", "-c", _WATCH, "sh", mark], stdin=read, stdout=null, stderr=null, cwd="/", env=variables
        )
    return None


def _dismiss(shell: subprocess.Popen[bytes] | None, write: int, last: bytes) -> None:
    """Lets the shell end; before that, it sends the signal `last`."""
    if shell and write in _ends:  # in a child process it is closed, and may be another file's by now
        with contextlib.suppress(OSError):
            os.write(write, last + b"\n")
        shell.wait()


def end_with_parent() -> None:
    """In a process that was forked: end it with the thread that has forked it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _close_ends() -> None:
    """In a child process: it may live longer than its parent."""
    while _ends:
        os.close(_ends.pop())


os.register_at_fork(after_in_child=_close_ends)
