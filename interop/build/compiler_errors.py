"""The errors of a compiler that setuptools or ninja runs: each of them once, in place of the compiler's own output."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import setuptools.errors

__all__ = ["errors_once"]

VERBOSE = "INTEROP_VERBOSE"
"""The environment variable that shows the output of a compiler that fails."""

# What ninja writes before the output of a command that failed, and at the start of the next line that is its own.
_FAILED = b"FAILED: "
_NINJAS = re.compile(rb"\[\d+/\d+\] |ninja: ")

Call = Callable[..., None]


@contextlib.contextmanager
def errors_once(folder: Path) -> Iterator[Callable[[Call], Call]]:
    """If a compiler fails in this context, raise an error that has each of its messages once, with the source's line.

    A function for many dtypes is compiled for each of them, and the compiler reports a mistake as often. Its own output
    is written to a file in `folder`, and shown only if nothing in it refers to a line, or `VERBOSE` is set.

    The context's value is for a function of setuptools that runs commands with options of `subprocess.check_call`: it
    returns one that does the same with the output.
    """
    output = _Output(is_shown=os.environ.get(VERBOSE, "0") not in ("", "0"))
    try:
        with output.copied(1), output.copied(2):
            yield output.of_commands
    except Exception as error:
        # torch raises RuntimeError if ninja fails.
        is_compilers = isinstance(error, setuptools.errors.CompileError)
        if not is_compilers and not isinstance(error.__cause__, subprocess.CalledProcessError):
            raise
        # Here, because interop.jit imports interop.build.
        from interop.cython.extensions import DECLARATIONS
        from interop.jit.diagnostics import BuildError, parse_output
        from interop.jit.manifest import is_fixed

        text = re.sub("[\u2018\u2019]", "'", b"".join(output.written).decode(errors="replace"))
        found = parse_output(text, None, lambda path: not is_fixed(path) and DECLARATIONS not in Path(path).parts)
        if not any(one.path for one in found):
            raise
        shown = str(BuildError("", diagnostics=found)).partition("\n")[2]
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / "compiler-output.txt"
            path.write_text(text, encoding="utf-8")
            shown += f"\nthe compiler's whole output is in {path}; the environment variable {VERBOSE}=1 shows it here"
            output.held.clear()
        # setuptools prints this class without a traceback, which would be longer than the message.
        raise setuptools.errors.CompileError(
            f"{error}\nthe compiler reports errors in the sources:\n{shown}"
        ) from error
    finally:
        _write(1, b"".join(output.held))


class _Output:
    """What this process and its commands write, and the part of it that is held back: that of failed commands."""

    def __init__(self, is_shown: bool):
        self.written: list[bytes] = []  # two threads append to these
        self.held: list[bytes] = []
        self._is_shown = is_shown

    @contextlib.contextmanager
    def copied(self, descriptor: int) -> Iterator[None]:
        """Add to `written` what is written to a descriptor, which gets each line at once unless it is held back."""
        try:
            _flush()
            original = os.dup(descriptor)
        except OSError:  # it is closed, or its reader is
            yield
            return
        read, write = os.pipe()

        def copy() -> None:
            is_held = False
            with open(read, "rb") as pipe:
                for line in pipe:
                    self.written.append(line)
                    is_held = (is_held or line.startswith(_FAILED)) and not (self._is_shown or _NINJAS.match(line))
                    if is_held:
                        self.held.append(line)
                    else:
                        _write(original, line)

        os.dup2(write, descriptor)
        os.close(write)
        thread = threading.Thread(target=copy, daemon=True)
        thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                _flush()
            os.dup2(original, descriptor)
            thread.join(timeout=1)
            # The thread lives on if a server that a compiler started, such as sccache's, has the pipe.
            if not thread.is_alive():
                os.close(original)

    def of_commands(self, call: Call) -> Call:
        """A function like `call` that holds back the output of a command that fails."""

        def held(command: Any, **options: Any) -> None:
            with tempfile.TemporaryFile() as file:
                try:
                    call(command, stdout=file, stderr=file, **options)
                except BaseException:
                    file.seek(0)
                    self.written.append(text := file.read())
                    self.held.append(text)
                    raise
                file.seek(0)
                _write(2, file.read())

        return call if self._is_shown else held


def _write(descriptor: int, text: bytes) -> None:
    with contextlib.suppress(OSError):  # such as a full disk: the compiler must not fail for it
        while text:
            text = text[os.write(descriptor, text) :]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
