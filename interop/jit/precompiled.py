"""Parts that are compiled once for many builds: the precompiled header, the bootstrap, stub libraries, objects."""

import os
import re
import secrets
import shutil
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import setuptools
from torch.utils.cpp_extension import include_paths

from interop.abi import NAME as ABI
from interop.build.cuda import NvccError, compile_cuda, cuda, headers_of, is_cuda, wants_cuda
from interop.build.extension import BOOTSTRAP
from interop.jit import manifest
from interop.jit.cache_folder import Entry, root
from interop.jit.cache_key import CUDA, NATIVE, cache_key, file_digest, flags_environment
from interop.jit.compiler import Compiler, folders_in
from interop.jit.diagnostics import BuildError, CommandFailedError
from interop.paths import get_include
from interop.private import remove
from interop.toolchain import CXX_FLAGS, is_gcc

__all__ = [
    "BOOTSTRAP_NAME",
    "compile_cuda_sources",
    "compile_source",
    "header",
    "included_files",
    "link_support",
]

BOOTSTRAP_NAME = "interop_jit"
"""The module's name in the bootstrap, which is the same for all modules."""

STUBS = ("c10", "torch", "torch_cpu", "torch_python")
HEADER = "precompiled.h"
OBJECT = "object.o"
MAKES = 3
"""How often an entry is made that is then gone, or damaged."""
LOW_MEMORY = ("--param", "ggc-min-heapsize=65536", "--param", "ggc-min-expand=30")
"""Makes g++ collect garbage more often, which takes an eighth less memory and a twentieth more time."""


@contextmanager
def header(compiler: Compiler, report: Callable[[str], None]) -> Iterator[tuple[str, ...]]:
    """The flags that make g++ read the headers that every module includes from a precompiled header.

    If the precompiled header does not match, for example because of a macro, g++ reads the original headers.
    """
    if not is_gcc():
        yield ()
        return
    ours = [f"-I{folder}" for folder in (get_include(), *include_paths(), sysconfig.get_path("include"))]
    key = cache_key("header", compiler.flags, ours, flags_environment(compiler.flags), uses=["include"])
    entry = Entry("headers", key)
    path = entry.folder / HEADER

    def make() -> None:
        report("precompiling headers, once")
        path.write_text(f'#include "interop/{HEADER}"\n')
        plain = replace(compiler, macros=(), folders=tuple(ours))
        # Written under another name, because the compiler of a killed build may still be writing.
        made = entry.folder / f"{secrets.token_hex(4)}.gch"
        plain.run(*plain.flags, *LOW_MEMORY, *plain.folders, "-x", "c++-header", str(path), "-o", str(made))
        made.replace(f"{path}.gch")

    with _get_or_make(entry, make, compiler.commands.stopped):
        yield "-include", str(path)


@contextmanager
def link_support(compiler: Compiler) -> Iterator[Path]:
    """A folder with ``bootstrap.o`` and with empty stub libraries, which have the names of torch's.

    The linker needs only the names of torch's libraries. Reading their symbols would take longer than everything else.
    """
    entry = Entry("support", cache_key("support", ABI, uses=["csrc"]))
    plain = replace(compiler, flags=("-fPIC", "-O2", *CXX_FLAGS), macros=(), folders=())

    def make() -> None:
        texts = {"MODULE": BOOTSTRAP_NAME, "ABI": ABI, "NATIVE": NATIVE}
        macros = [
            f"-DINTEROP_INIT=PyInit_{BOOTSTRAP_NAME}",
            *(f'-DINTEROP_{key}="{text}"' for key, text in texts.items()),
        ]
        bootstrap = str(entry.folder / "bootstrap.o")
        plain.run(*plain.flags, *macros, f"-I{sysconfig.get_path('include')}", "-c", BOOTSTRAP, "-o", bootstrap)
        for name in STUBS:
            library = f"lib{name}.so"
            plain.link(["-x", "c++", os.devnull], entry.folder / library, f"-Wl,-soname,{library}")

    with _get_or_make(entry, make, compiler.commands.stopped):
        yield entry.folder


@contextmanager
def _get_or_make(entry: Entry, make: Callable[[], None], stopped: Event | None = None) -> Iterator[None]:
    """A context in which the entry exists. If it does not, `make` creates it. `stopped` ends the wait for a lock."""
    for attempt in range(MAKES + 1):  # another process may remove it in the meantime to free space
        with entry.shared(stopped):
            if manifest.find(entry.folder):
                entry.use()
                yield
                return
        if attempt == MAKES:
            break
        with entry.exclusive(stopped=stopped):
            if not manifest.find(entry.folder):
                entry.make_empty()
                started = time.time()
                try:
                    make()
                    manifest.write(entry.folder, "", (), started)
                except BaseException:
                    remove(entry.folder)
                    raise
    raise manifest.DamagedError(f"{entry.folder} was made {MAKES} times, and is not there or not as it was written")


def compile_source(compiler: Compiler, source: str, output: Path, force: bool) -> set[str]:
    """Compile a user's source to the file `output`; return the files that it includes.

    No edit of the ``.pyx`` changes the object, so the object is cached. With `force`, it is compiled even if nothing
    has changed.
    """
    flags = compiler.flags, compiler.macros, compiler.folders, flags_environment(compiler.flags)
    entry = Entry("objects", cache_key("object", source, file_digest(source), flags))
    with entry.exclusive(stopped=compiler.commands.stopped):
        found = manifest.find(entry.folder)
        if force or not (found and found.is_current()):
            entry.make_empty()
            started = time.time()
            # Under another name, because the compiler of a killed build may still be writing.
            made = entry.folder / f"{secrets.token_hex(4)}.o"
            compiler.compile(Path(source), made)
            os.replace(f"{made}.d", entry.folder / f"{OBJECT}.d")
            made.replace(entry.folder / OBJECT)
            read = included_files(entry.folder / OBJECT)
            absent = manifest.absent_shadowing(read, compiler.search_path)
            manifest.write(entry.folder, OBJECT, read, started, absent=absent)
        entry.use()
        shutil.copyfile(entry.folder / OBJECT, output)
        return included_files(entry.folder / OBJECT)


def compile_cuda_sources(
    extension: setuptools.Extension, folder: Path, report: Callable[[str], None], verbose: bool, force: bool
) -> set[str]:
    """Compile the ``.cu`` sources of `extension`, if it has any; return the files that they include.

    Their objects, copied into `folder`, become its extra objects. With `force` they are always compiled.
    """
    if not wants_cuda(extension):
        return set()
    sources = [source for source in extension.sources if is_cuda(source)]
    state = cuda()
    if not sources:
        if state.toolkit:
            compile_cuda(extension, state, folder)  # adds CUDA's headers and libraries
        return set()
    if not state.toolkit:
        raise BuildError(extension.name, f"it has .cu sources, but {state.reason}")
    report("compiling for CUDA")
    known = len(extension.extra_objects)
    selected = [path for path in extension.include_dirs if Path(path).is_relative_to(root())]  # new after each edit
    extension.include_dirs = [path for path in extension.include_dirs if path not in selected]
    # ninja sees neither the flags that nvcc takes from the environment nor a new header that precedes another.
    extra = extension.extra_compile_args
    environment = flags_environment(extra.get("nvcc", ()) if isinstance(extra, dict) else (), CUDA)
    flags = extra, extension.define_macros, extension.include_dirs
    entry = Entry("objects", cache_key("cuda", sources, flags, environment))
    with entry.exclusive():
        before = manifest.find(entry.folder)
        # Without a complete manifest, it is unknown whether the objects are complete.
        if force or before is None or any(map(os.path.exists, before.absent)):
            entry.make_empty()
        (entry.folder / manifest.NAME).unlink(missing_ok=True)
        started = time.time()
        try:
            compile_cuda(extension, state, entry.folder, verbose, quiet=not verbose)
        except NvccError as error:
            if before:  # its list of absent files is still valid
                manifest.write(entry.folder, "", (), started, absent=before.absent)
            raise CommandFailedError(("nvcc",), error.output, 1) from None
        entry.use()
        extension.include_dirs = [*selected, *extension.include_dirs]
        for index, path in enumerate(extension.extra_objects[known:], known):
            extension.extra_objects[index] = shutil.copyfile(path, folder / os.path.basename(path))
        read = headers_of(entry.folder)
        words = [word for listed in extra.values() for word in listed] if isinstance(extra, dict) else list(extra)
        absent = manifest.absent_shadowing(read, [*extension.include_dirs, *folders_in(words)])
        manifest.write(entry.folder, "", read, started, absent=absent)
        return read


def included_files(output: Path) -> set[str]:
    """The files in the make rule that the compiler has written beside `output`."""
    text = Path(f"{output}.d").read_text(encoding="utf-8", errors="surrogateescape")
    words = re.findall(r"(?:\\.|\$\$|[^\s\\])+", text.partition(":")[2].replace("\\\n", " "))
    return {re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words}
