"""Objects of the sources that no edit of the .pyx changes: compiled once, and linked to each build of the module."""

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import setuptools
import torch

from interop.build.cuda import NvccError, compile_cuda, cuda, headers_of, is_cuda, uses_cuda
from interop.jit import manifest, surroundings
from interop.jit.cache import Entry, root
from interop.jit.compiler import CommandFailedError, Compiler, folders_in
from interop.jit.errors import BuildError
from interop.jit.recipe import digest_of_file, key_of
from interop.jit.shadows import shadowing

__all__ = ["compile_cuda_sources", "compile_source", "included"]

OBJECT = "object.o"


def compile_source(compiler: Compiler, source: str, output: Path, force: bool) -> set[str]:
    """Compile a source of the user's to the file `output`; return the files that it includes.

    With `force` also if nothing has changed.
    """
    known = compiler.flags, compiler.macros, compiler.folders, surroundings.of_flags(compiler.flags)
    entry = Entry("objects", key_of("object", source, digest_of_file(source), known))
    with entry.alone():
        found = manifest.read(entry.folder)
        if force or not (found and found.holds(entry.folder)):
            shutil.rmtree(entry.folder, ignore_errors=True)
            entry.folder.mkdir(parents=True, mode=0o700)
            started = time.time()
            # Under a name of its own: the compiler of a build that was killed may still be writing.
            made = entry.folder / f"{secrets.token_hex(4)}.o"
            compiler.compile(Path(source), made)
            os.replace(f"{made}.d", entry.folder / f"{OBJECT}.d")
            made.replace(entry.folder / OBJECT)
            read = included(entry.folder / OBJECT)
            manifest.write(entry.folder, OBJECT, read, started, absent=shadowing(read, compiler.searched))
        entry.use()
        shutil.copyfile(entry.folder / OBJECT, output)
        return included(entry.folder / OBJECT)


def compile_cuda_sources(
    extension: setuptools.Extension, folder: Path, say: Callable[[str], None], verbose: bool, force: bool
) -> set[str]:
    """Compile the ``.cu`` sources of `extension`, if it has any; return the files that they include.

    Their objects, copied into `folder`, become its extra objects. With `force` they are compiled in any case.
    """
    sources = [source for source in extension.sources if is_cuda(source)]
    if not sources and (torch.version.cuda is None or not uses_cuda(extension)):
        return set()
    state = cuda()
    if not state.toolkit:
        if not sources:
            return set()
        raise BuildError(extension.name, f"it has .cu sources, and {state.reason}")
    if not sources:
        compile_cuda(extension, state, folder)
        return set()
    say("compiling for CUDA")
    known = len(extension.extra_objects)
    chosen = [path for path in extension.include_dirs if Path(path).is_relative_to(root())]  # anew with each edit
    extension.include_dirs = [path for path in extension.include_dirs if path not in chosen]
    # nvcc's are not in ninja's command, and ninja sees no header that has come before another.
    extra = extension.extra_compile_args
    around = surroundings.of_flags(extra.get("nvcc", ()) if isinstance(extra, dict) else (), surroundings.CUDA)
    flags = extension.extra_compile_args, extension.define_macros, extension.include_dirs
    entry = Entry("objects", key_of("cuda", sources, flags, around))
    with entry.alone():
        before = manifest.read(entry.folder)
        if force or (before and any(map(os.path.exists, before.absent))):
            shutil.rmtree(entry.folder, ignore_errors=True)
        started = time.time()
        try:
            compile_cuda(extension, state, entry.folder, verbose, quiet=not verbose)
        except NvccError as error:
            raise CommandFailedError(("nvcc",), error.output, 1) from None
        entry.use()
        extension.include_dirs = [*chosen, *extension.include_dirs]
        for index, path in enumerate(extension.extra_objects[known:], known):
            extension.extra_objects[index] = shutil.copyfile(path, folder / os.path.basename(path))
        read = headers_of(entry.folder)
        words = [word for listed in extra.values() for word in listed] if isinstance(extra, dict) else list(extra)
        searched = [*extension.include_dirs, *folders_in(words)]
        manifest.write(entry.folder, "", read, started, absent=shadowing(read, searched))
        return read


def included(output: Path) -> set[str]:
    """The files that the compiler has noted beside `output`, in a rule for make."""
    text = Path(f"{output}.d").read_text(encoding="utf-8", errors="surrogateescape")
    words = re.findall(r"(?:\\.|\$\$|[^\s\\])+", text.partition(":")[2].replace("\\\n", " "))
    return {re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words}
