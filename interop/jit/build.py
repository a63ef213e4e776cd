"""Builds a module from its recipe: translates, compiles, links, and writes the manifest last."""

import errno
import os
import re
import sysconfig
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import setuptools
import setuptools.errors
import torch

from interop.build.extension import Extension
from interop.build.translate import is_cython
from interop.jit import manifest
from interop.jit.cache import root
from interop.jit.compiler import CommandFailedError, Compiler
from interop.jit.diagnose import Generated, diagnose
from interop.jit.errors import BuildError, message_of
from interop.jit.objects import compile_cuda_sources, compile_source, included
from interop.jit.recipe import Recipe
from interop.jit.support import BOOTSTRAPPED, NATIVE, precompiled, support
from interop.jit.translate import translate
from interop.paths import get_include, get_pxd_dir

__all__ = ["build"]

_INITIALISED = (
    "name a .pyx, or in C++ write PYBIND11_MODULE or PyInit_ with TORCH_EXTENSION_NAME, which is the module's name"
)
# What compilers and linkers say where a disk or a quota is full, or a limit is reached.
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|File too large|File size limit exceeded")


def build(recipe: Recipe, folder: Path, say: Callable[[str], None], verbose: bool) -> str:
    """Build the module into `folder`, and return the name of its file; a `BuildError` if that fails.

    `say` is called with what is being done.
    """
    work = _Work(recipe, folder, say, verbose)
    try:
        return work.run()
    except BuildError as error:
        raise _labelled(error, recipe, folder) from None
    except CommandFailedError as failed:
        found = diagnose(failed.output, work.generated, lambda path: path in work.written or not _is_fixed(path))
        in_sources = any(one.path for one in found)  # and their lines may say anything
        if not in_sources and _NO_ROOM.search(failed.output):
            raise BuildError(
                recipe.name,
                message_of(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), root())),
                output=failed.output,
                command=failed.command,
            ) from None
        reason = "" if found else _last_words(failed)
        if not in_sources and f"PyInit_{recipe.name}" in failed.output:
            found, reason = [], f"no source defines PyInit_{recipe.name}; {_INITIALISED}"
        told = BuildError(recipe.name, reason, diagnostics=found, output=failed.output, command=failed.command)
        raise _labelled(told, recipe, folder) from None
    except setuptools.errors.BaseError as error:
        raise BuildError(recipe.name, str(error)) from None


class _Work:
    """A build that goes on."""

    def __init__(self, recipe: Recipe, folder: Path, say: Callable[[str], None], verbose: bool):
        self.recipe, self.folder, self.say, self.verbose = recipe, folder, say, verbose
        self.generated: list[Generated] = []
        self.written: set[str] = set()  # the files with lines of the user
        options = {k: v for k, v in recipe.options.items() if k not in ("compiler_directives", "annotate")}
        for name, text in recipe.texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        sources = [str(folder / source) if source in recipe.texts else source for source in recipe.sources]
        self.written.update(sources, (str(folder / name) for name in recipe.texts))
        self.extension = Extension(recipe.name, sources, bootstrap=False, **options)
        beside = dict.fromkeys(os.path.dirname(source) for source in sources)
        self.extension.include_dirs = [*self.extension.include_dirs[:1], *beside, *self.extension.include_dirs[1:]]

    def run(self) -> str:
        started = time.time()
        with ExitStack() as stack, ThreadPoolExecutor(os.cpu_count()) as pool:
            prepared: list[Future] = []

            def prepare() -> None:
                """What needs the flags alone goes on while Cython works."""
                compiler = self._compiler()
                prepared.append(pool.submit(stack.enter_context, precompiled(compiler, self.say)))
                prepared.append(pool.submit(stack.enter_context, support(compiler, self.say)))

            read = self._translate(stack, prepare)
            if not prepared:
                prepare()
            read |= compile_cuda_sources(self.extension, self.folder, self.say, self.verbose)
            header, shared = (future.result() for future in prepared)
            self.say("compiling")
            compiler = self._compiler()
            # What the .pyx uses of ATen is chosen anew with each edit, and is not for others.
            plain = replace(
                compiler, folders=tuple(one for one in compiler.folders if not one.startswith(f"-I{root()}"))
            )
            jobs = {}
            for index, source in enumerate(self.extension.sources):
                output = self.folder / f"{index}-{Path(source).stem}.o"
                if source in {str(one.cpp) for one in self.generated}:
                    jobs[output] = pool.submit(self._compile_generated, compiler, source, output, header)
                else:
                    jobs[output] = pool.submit(compile_source, plain, source, output)
            wait(jobs.values())
            read = read.union(*(job.result() for job in jobs.values()))
            self.say("linking")
            module = self._link(compiler, [*jobs, *self.extension.extra_objects], shared)
        files = {path for path in read | self.written if not _is_fixed(path)}
        manifest.write(self.folder, module, files, self._absent(), started)
        return module

    def _compiler(self) -> Compiler:
        return Compiler.of(self.extension, self.verbose)

    def _translate(self, stack: ExitStack, ready: Callable[[], object]) -> set[str]:
        read = set()
        for source in [source for source in self.extension.sources if is_cython(source)]:
            self.say("translating")
            cpp = self.folder / f"{self.recipe.name}.cpp"
            read |= translate(source, self.extension, cpp, self.recipe.options, stack, ready)
            sources = [source, *sorted(path for path in read if path != source and not _is_fixed(path))]
            self.generated.append(Generated(cpp, sources))
            self.extension.sources = [str(cpp) if one == source else one for one in self.extension.sources]
        return read

    def _compile_generated(self, compiler: Compiler, source: str, output: Path, header: tuple[str, ...]) -> set[str]:
        """Compile what Cython wrote, with the texts that come before its first line; return the files included."""
        texts = [name for name in self.recipe.texts if name.endswith(".h")]
        first = (word for name in texts for word in ("-include", str(self.folder / name)))
        compiler.compile(Path(source), output, *header, *first)
        return included(output)

    def _link(self, compiler: Compiler, objects: Iterable[Path | str], shared: Path) -> str:
        extension = self.extension
        libraries = [f"-l{name}" for name in extension.libraries]
        folders = [f"-L{folder}" for folder in (shared, *extension.library_dirs)]
        folders += [f"-Wl,-rpath,{folder}" for folder in extension.runtime_library_dirs]
        compiler.link(
            list(objects),
            self.folder / NATIVE,
            *folders,
            "-Wl,--no-as-needed",  # nothing is needed of the stand-ins for torch's libraries, that the linker could see
            f"-Wl,--defsym=PyInit_{BOOTSTRAPPED}=PyInit_{self.recipe.name}",
            *libraries,
            *extension.extra_link_args,
        )
        module = self.recipe.name + sysconfig.get_config_var("EXT_SUFFIX")
        alias = f"-Wl,--defsym=PyInit_{self.recipe.name}=PyInit_{BOOTSTRAPPED}"
        compiler.link([shared / "bootstrap.o"], self.folder / module, alias)
        return module

    def _absent(self) -> list[str]:
        """The .pxd files that Cython would read if they were there."""
        found = []
        for source in filter(is_cython, self.recipe.sources):
            if source not in self.recipe.texts:
                found += [os.path.join(os.path.dirname(source), f"{self.recipe.name}.pxd")]
        return [path for path in found if not os.path.exists(path)]


def _is_fixed(path: str) -> bool:
    """Whether a file changes only with what is in the key already: torch, Python, the system, and our own."""
    return os.path.abspath(path).startswith(tuple(folder + os.sep for folder in _fixed()))


def _fixed() -> list[str]:
    import Cython

    folders = [Path(torch.__file__).parent, Path(Cython.__file__).parent, sysconfig.get_path("include"), root()]
    folders += [get_include(), get_pxd_dir(), "/usr/include", "/usr/lib"]
    return [str(folder) for folder in folders]


def _labelled(error: BuildError, recipe: Recipe, folder: Path) -> BuildError:
    """With the names that the user knows for what became files in the cache."""
    names = {str(folder / name): label for name, label in recipe.labels.items()}
    found = [replace(one, path=names.get(one.path or "", one.path)) for one in error.diagnostics]
    same = BuildError(recipe.name, diagnostics=found, output=error.output, command=error.command)
    return same if found else error


def _last_words(failed: CommandFailedError) -> str:
    lines = failed.output.strip().splitlines() or [f"{failed.command[0]} ended with status {failed.status}"]
    return lines[-1]
