"""Build a module in stages: translate, compile, link, and write the manifest last."""

import copy
import errno
import os
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import setuptools
import setuptools.errors
from torch.utils import cpp_extension

from interop.build.cuda import wants_cuda
from interop.build.extension import Extension, apply_distutils_lines
from interop.cython.dependencies import package_root
from interop.cython.extensions import is_cython
from interop.cython.translate import TranslationError, translate
from interop.jit import manifest, precompiled
from interop.jit.cache_folder import root
from interop.jit.cache_key import CPU, CUDA, Target, is_native
from interop.jit.compiler import Compiler, named_files
from interop.jit.diagnostics import (
    BuildError,
    CommandFailedError,
    Generated,
    explain_os_error,
    fullest_folder,
    parse_output,
)
from interop.jit.manifest import is_fixed
from interop.jit.options import check_flag
from interop.processes import Commands, threads
from interop.stable_abi import StableABI, stable_abi

__all__ = ["build"]

_ENTRY_POINT = (
    "give a .pyx, or write PYBIND11_MODULE or PyInit_ in C++ with TORCH_EXTENSION_NAME, which is the module's name"
)
# Messages of compilers and linkers about a full disk, a quota or a limit.
_CODES = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "File too large": errno.EFBIG,
    "File size limit exceeded": errno.EFBIG,
}
_NO_SPACE = re.compile("|".join(_CODES))


@dataclass(frozen=True)
class Build:
    """One build: its target, its folder, and its options."""

    target: Target
    folder: Path  # for files of this module alone
    report: Callable[[str], None]  # called with a few words when a stage begins
    commands: Commands  # those of all its threads
    verbose: bool = False  # whether to print commands and their output
    force: bool = False  # whether to recompile objects that are in the cache

    @property
    def sources(self) -> list[str]:
        """The paths of the sources; texts become files in the folder."""
        return [str(self.folder / one) if one in self.target.texts else one for one in self.target.sources]

    @property
    def written(self) -> set[str]:
        """The user's files, and the files with the user's texts."""
        return {*self.sources, *(str(self.folder / name) for name in self.target.texts)}

    @property
    def abi(self) -> StableABI | None:
        """The stable ABI that the module is compiled for; None if for the running torch alone."""
        return stable_abi(self.target.options.get("stable"), self.target.options.get("py_limited_api"))

    def make_extension(self) -> setuptools.Extension:
        """The flags and sources, as a setuptools extension."""
        options = {k: v for k, v in self.target.options.items() if k not in ("compiler_directives", "annotate")}
        extension = Extension(self.target.name, self.sources, bootstrap=False, **options)
        beside = dict.fromkeys(os.path.dirname(source) for source in self.sources)
        extension.include_dirs = [*extension.include_dirs[:1], *beside, *extension.include_dirs[1:]]
        return extension

    def compiler(self, extension: setuptools.Extension) -> Compiler:
        """The C++ compiler with the flags of `extension`."""
        return Compiler.of(extension, self.commands, self.verbose)


@dataclass(frozen=True)
class Translated:
    """The target in C++: the extension with its C++ sources, Cython's output, and the files that Cython has read."""

    extension: setuptools.Extension
    generated: Generated | None
    read: frozenset[str]
    precompiled: "Precompiled | None"  # None for a stable module, which does not use it


@dataclass(frozen=True)
class Precompiled:
    """The parts that all modules for the running torch share."""

    header: Future[tuple[str, ...]]  # the flags for the precompiled header
    support: Future[Path]  # the folder of the bootstrap and the stub libraries


@dataclass(frozen=True)
class Compiled:
    """The objects of a module, the extension with its CUDA additions, and the files that the compilers have read."""

    extension: setuptools.Extension
    objects: tuple[Path, ...]
    read: frozenset[str]


def build(
    target: Target, folder: Path, report: Callable[[str], None], verbose: bool = False, force: bool = False
) -> str:
    """Build the module in `folder`, and return the name of its file; raise `BuildError` if that fails.

    The parameters are those of `Build`. An interrupt ends all commands of the build.
    """
    started = time.time()
    try:
        for name, text in target.texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        with ExitStack() as stack, threads(os.cpu_count()) as (pool, commands):
            job = Build(target, folder, report, commands, verbose, force)
            translated = _translate(job, stack, pool)
            try:
                compiled = _compile(job, translated, pool)
                linked = _link(job, translated, compiled)
            except CommandFailedError as failed:
                raise _explained(job, translated.generated, failed) from None
        _write_manifest(job, started, translated, compiled, linked)
    except TranslationError as error:
        found = BuildError(target.name, diagnostics=error.diagnostics, output=error.output)
        raise _labelled(target, folder, found) from None
    except BuildError as error:
        raise _labelled(target, folder, error) from None
    except setuptools.errors.BaseError as error:
        raise BuildError(target.name, str(error)) from None
    return target.made[0]


def _translate(job: Build, stack: ExitStack, pool: ThreadPoolExecutor) -> Translated:
    """Translate the ``.pyx``, if there is one. Precompiled parts stay in the cache until `stack` closes."""
    extension = job.make_extension()
    prepared: list[Precompiled] = []

    def prepare() -> None:
        """Start the work that needs only the flags; it continues while Cython translates."""
        if job.abi:
            return
        compiler = job.compiler(extension)
        header = pool.submit(stack.enter_context, precompiled.header(compiler, job.report))
        support = pool.submit(stack.enter_context, precompiled.link_support(compiler))
        prepared.append(Precompiled(header, support))

    cython = list(filter(is_cython, job.sources))
    if not cython:
        prepare()
        return Translated(extension, None, frozenset(), next(iter(prepared), None))
    source = cython[0]

    def start(distutils_info: Any) -> None:
        for key in ("extra_compile_args", "extra_link_args"):
            for flag in distutils_info.values.get(key, ()):
                check_flag(f"{source}: # distutils: {key}", flag)
        apply_distutils_lines(distutils_info, source, extension)
        prepare()

    job.report("translating")
    cpp = job.folder / f"{job.target.name}.cpp"
    translation = translate(
        source,
        extension.name,
        cpp,
        declarations=job.folder / "declarations",
        include_path=[os.path.dirname(source), *extension.include_dirs],
        directives=getattr(extension, "directives", {}) | dict(job.target.options.get("compiler_directives") or {}),
        whole_paths=True,
        stable=job.abi is not None,
        started=start,
        annotate="default" if job.target.options.get("annotate") else None,
    )
    extension.include_dirs = [*translation.include_dirs, *extension.include_dirs]
    extension.sources = [str(cpp) if one == source else one for one in extension.sources]
    read = [source, *sorted(path for path in translation.read if path != source and not is_fixed(path))]
    return Translated(extension, Generated(cpp, read), translation.read, next(iter(prepared), None))


def _compile(job: Build, translated: Translated, pool: ThreadPoolExecutor) -> Compiled:
    """Compile all sources. The user's own are compiled only if they are not in the cache."""
    extension = copy.deepcopy(translated.extension)
    read = precompiled.compile_cuda_sources(extension, job.folder, job.report, job.verbose, job.force)
    header: tuple[str, ...] = ()
    if translated.precompiled:
        header = translated.precompiled.header.result()
        translated.precompiled.support.result()  # if the bootstrap cannot be compiled, nothing else can
    job.report("compiling")
    compiler = job.compiler(extension)
    # Leave out the ATen declarations for the .pyx: they change with each edit, and no other module uses them.
    plain = replace(compiler, folders=tuple(one for one in compiler.folders if not one.startswith(f"-I{root()}")))
    texts = [str(job.folder / name) for name in job.target.texts if name.endswith(".h")]
    before = [*header, *(word for path in texts for word in ("-include", path))]
    generated = translated.generated and str(translated.generated.cpp)

    def compile_generated(source: str, output: Path) -> set[str]:
        compiler.compile(Path(source), output, *before)
        return precompiled.included_files(output)

    jobs: dict[Path, Future[set[str]]] = {}
    for index, source in enumerate(extension.sources):
        output = job.folder / f"{index}-{Path(source).stem}.o"
        if source == generated:
            jobs[output] = pool.submit(compile_generated, source, output)
        else:
            jobs[output] = pool.submit(precompiled.compile_source, plain, source, output, job.force)
    wait(jobs.values())
    read = read.union(*(done.result() for done in jobs.values()))
    return Compiled(extension, tuple(jobs), frozenset(read))


def _link(job: Build, translated: Translated, compiled: Compiled) -> frozenset[str]:
    """Link the two files of the module, or the single file of a stable module; return what the linker has read."""
    job.report("linking")
    extension, name, made = compiled.extension, job.target.name, job.target.made
    compiler = job.compiler(extension)
    support = translated.precompiled.support.result() if translated.precompiled else None
    folders = [f"-L{folder}" for folder in (*([support] if support else []), *extension.library_dirs)]
    # The module runs on this machine, so the user's libraries stay where the linker has found them.
    users = [one for one in translated.extension.library_dirs if one not in cpp_extension.library_paths()]
    for folder in (*extension.runtime_library_dirs, *users):
        folders += ["-Xlinker", "-rpath", "-Xlinker", folder]
    objects = [*compiled.objects, *extension.extra_objects]
    libraries = [*(f"-l{library}" for library in extension.libraries), *extension.extra_link_args]
    if support is None:
        read = compiler.link(objects, job.folder / made[0], *folders, *libraries)
        return frozenset(read)
    module, native = made
    read = compiler.link(
        objects,
        job.folder / native,
        *folders,
        "-Wl,--no-as-needed",  # the linker cannot know which symbols of stub libraries are needed
        f"-Wl,--defsym=PyInit_{precompiled.BOOTSTRAP_NAME}=PyInit_{name}",
        *libraries,
    )
    alias = f"-Wl,--defsym=PyInit_{name}=PyInit_{precompiled.BOOTSTRAP_NAME}"
    compiler.link([support / "bootstrap.o"], job.folder / module, alias)
    return frozenset(read)


def _write_manifest(
    job: Build, started: float, translated: Translated, compiled: Compiled, linked: frozenset[str]
) -> None:
    extension = compiled.extension
    compiler = job.compiler(extension)
    files = [source for source in job.target.sources if source not in job.target.texts]
    folders = [*map(os.path.dirname, files), *map(package_root, files), *compiler.search_path]
    # The .pxd of the module itself, anywhere on Cython's search path.
    own = [
        os.path.join(folder, f"{job.target.name}.pxd")
        for folder in dict.fromkeys(folders)
        if translated.generated and not is_fixed(os.path.join(folder, "file"))
    ]
    read = translated.read | compiled.read
    declarations = {path for path in read if path.endswith(".pxd")}
    absent = [
        *manifest.absent_shadowing(read - declarations, folders),
        *manifest.absent_shadowing(declarations, [*folders, *sys.path]),
        *manifest.absent_libraries(extension.libraries, extension.library_dirs, extension.extra_link_args),
        *(path for path in own if not os.path.exists(path)),
    ]
    extra = extension.extra_compile_args
    flags = [flag for words in extra.values() for flag in words] if isinstance(extra, dict) else []
    flags += [*compiler.flags, *compiler.macros]
    environment = [CPU] if is_native(flags) else []
    environment += [CUDA] if wants_cuda(translated.extension) else []
    manifest.write(
        job.folder,
        job.target.made[0],
        {
            path
            for path in read.union(linked, job.written, filter(os.path.exists, own), named_files(flags))
            if not is_fixed(path)
        },
        started,
        made=[*job.target.made, *(path.name for path in job.folder.glob("*.html"))],
        absent=absent,
        on_sys_path=manifest.found_on_sys_path(declarations, folders),
        environment=environment,
    )


def _explained(job: Build, generated: Generated | None, failed: CommandFailedError) -> BuildError:
    """The error for a failed command, with the source lines that it concerns."""
    name, written = job.target.name, job.written
    found = parse_output(failed.output, generated, lambda path: path in written or not is_fixed(path))
    reason = ""
    placed = any(one.path for one in found)  # then the output may quote any text of the sources
    # If g++ cannot write a precompiled header, it reports that at the last line that it has read. Ignore a message if
    # the text is in that line itself, as in `#error`, because its author wrote it.
    said = [one.message for one in found if not _NO_SPACE.search(one.text or "")] if placed else [failed.output]
    full = _NO_SPACE.search("\n".join(said))
    if full:
        code = _CODES[full[0]]
        place = fullest_folder() if code == errno.ENOSPC else root()
        found, reason = [], explain_os_error(OSError(code, os.strerror(code), place))
    elif not placed and f"PyInit_{name}" in failed.output:
        found, reason = [], f"no source defines PyInit_{name}; {_ENTRY_POINT}"
    if not found and not reason:
        lines = failed.output.strip().splitlines()
        reason = lines[-1] if lines else f"{failed.command[0]} ended with status {failed.status}"
    return BuildError(name, reason, diagnostics=found, output=failed.output, command=failed.command)


def _labelled(target: Target, folder: Path, error: BuildError) -> BuildError:
    """The error with the user's names for texts that are files in the cache."""
    names = {str(folder / name): label for name, label in target.labels.items()}
    found = [replace(one, path=names.get(one.path or "", one.path)) for one in error.diagnostics]
    same = BuildError(error.name, diagnostics=found, output=error.output, command=error.command)
    return same if found else error
