"""What modules share, made once: the precompiled header, the bootstrap, and stand-ins for torch's libraries."""

import os
import secrets
import shutil
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torch.utils.cpp_extension import include_paths

from interop.abi import NAME as ABI
from interop.build.extension import BOOTSTRAP
from interop.jit.cache import Entry
from interop.jit.compiler import Compiler
from interop.jit.recipe import key_of
from interop.jit.surroundings import of_flags
from interop.paths import get_include
from interop.toolchain import CXX_FLAGS, is_gcc

__all__ = ["BOOTSTRAPPED", "NATIVE", "precompiled", "support"]

NATIVE = "native.so"
"""The file with the module itself; beside it lies the one that is imported, the bootstrap."""

BOOTSTRAPPED = "interop_jit"
"""What the bootstrap, one for all modules, takes for the module's name."""

STUBS = ("c10", "torch", "torch_cpu", "torch_python")
HEADER = "precompiled.h"
DONE = "done"
FRUGAL = ("--param", "ggc-min-heapsize=65536", "--param", "ggc-min-expand=30")
"""Makes g++ collect garbage more often: an eighth less memory, for a twentieth more time."""


@contextmanager
def precompiled(compiler: Compiler, say: Callable[[str], None]) -> Iterator[tuple[str, ...]]:
    """The flags that make g++ read the headers that every module includes in a form that it has prepared.

    A g++ that finds that it does not fit, because of a macro perhaps, reads the headers themselves.
    """
    if not is_gcc():
        yield ()
        return
    ours = [f"-I{folder}" for folder in (get_include(), *include_paths(), sysconfig.get_path("include"))]
    entry = Entry("headers", key_of("header", compiler.flags, ours, of_flags(compiler.flags), of=["include"]))
    header = entry.folder / HEADER

    def make() -> None:
        say("precompiling headers, once")
        header.write_text(f'#include "interop/{HEADER}"\n')
        plain = replace(compiler, macros=(), folders=tuple(ours))
        # Not at once under its name: the compiler of a build that was killed may still be writing.
        made = entry.folder / f"{secrets.token_hex(4)}.gch"
        plain.run(*plain.flags, *FRUGAL, *plain.folders, "-x", "c++-header", str(header), "-o", str(made))
        made.replace(f"{header}.gch")

    with made(entry, make):
        yield "-include", str(header)


@contextmanager
def support(compiler: Compiler, say: Callable[[str], None]) -> Iterator[Path]:
    """A folder with ``bootstrap.o`` and with libraries that have torch's names and nothing in them.

    The linker needs of torch's libraries their names alone. To read their symbols takes longer than all the rest.
    """
    entry = Entry("support", key_of("support", ABI, of=["csrc"]))
    plain = Compiler(compiler.name, ("-fPIC", "-O2", *CXX_FLAGS), (), (), compiler.verbose)

    def make() -> None:
        macros = [f"-DINTEROP_MODULE={BOOTSTRAPPED}", f'-DINTEROP_ABI="{ABI}"', f'-DINTEROP_NATIVE="{NATIVE}"']
        bootstrap = str(entry.folder / "bootstrap.o")
        plain.run(*plain.flags, *macros, f"-I{sysconfig.get_path('include')}", "-c", BOOTSTRAP, "-o", bootstrap)
        for name in STUBS:
            library = f"lib{name}.so"
            plain.link(["-x", "c++", os.devnull], entry.folder / library, f"-Wl,-soname,{library}")

    with made(entry, make):
        yield entry.folder


@contextmanager
def made(entry: Entry, make: Callable[[], None]) -> Iterator[None]:
    """A context in which the entry is there, made by `make` if it was not, and stays."""
    done = entry.folder / DONE
    while True:
        with entry.shared():
            if _is_whole(done):
                entry.use()
                yield
                return
        with entry.alone():
            if not _is_whole(done):
                shutil.rmtree(entry.folder, ignore_errors=True)
                entry.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                try:
                    make()
                except BaseException:
                    shutil.rmtree(entry.folder, ignore_errors=True)
                    raise
                done.write_text("\n".join(path.name for path in entry.folder.iterdir()))


def _is_whole(done: Path) -> bool:
    """Whether an entry was finished, and nobody has removed a part of it."""
    try:
        names = done.read_text().splitlines()
    except OSError:
        return False
    return all(done.with_name(name).exists() for name in names)
