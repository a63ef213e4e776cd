"""The errors of a compiler that setuptools or ninja runs: each of them once."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import setuptools.errors


@contextlib.contextmanager
def errors_once() -> Iterator[None]:
    """If a compiler fails in this context, raise an error that has each of its messages once, below its output.

    A function for many dtypes is compiled for each of them, and the compiler reports a mistake as often.
    """
    output: list[bytes] = []  # two threads append to it
    try:
        with _copied(1, output), _copied(2, output):
            yield
    except Exception as error:
        # torch raises RuntimeError if ninja fails.
        is_compilers = isinstance(error, setuptools.errors.CompileError)
        if not is_compilers and not isinstance(error.__cause__, subprocess.CalledProcessError):
            raise
        from interop.jit.diagnostics import BuildError, parse_output  # here, because interop.jit imports interop.build
        from interop.jit.manifest import is_fixed

        text = b"".join(output).decode(errors="replace").translate({ord(quote): "'" for quote in "\u2018\u2019"})
        found = parse_output(text, None, lambda path: not is_fixed(path))
        if not any(one.path for one in found):
            raise
        shown = str(BuildError("", diagnostics=found)).partition("\n")[2]
        # setuptools prints this class without a traceback, which would be longer than the message.
        raise setuptools.errors.CompileError(
            f"{error}\nthe compiler reports errors in the sources:\n{shown}"
        ) from error


@contextlib.contextmanager
def _copied(descriptor: int, parts: list[bytes]) -> Iterator[None]:
    """Add to `parts` what this process and its commands write to a descriptor, which still gets it at once."""
    try:
        _flush()
        original = os.dup(descriptor)
    except OSError:  # it is closed, or its reader is
        yield
        return
    read, write = os.pipe()

    def copy() -> None:
        with open(read, "rb", 0) as pipe:
            while part := pipe.read(1 << 16):
                parts.append(part)
                with contextlib.suppress(OSError):  # such as a full disk: the compiler must not fail for it
                    while part:
                        part = part[os.write(original, part) :]

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
        if not thread.is_alive():  # it lives on if a server that a compiler started, such as sccache's, has the pipe
            os.close(original)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
