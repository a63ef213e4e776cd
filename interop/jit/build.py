"""Builds a module from its recipe: translates, compiles, links, and writes the manifest last."""

import errno
import os
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import setuptools.errors
import torch
from Cython.Utils import find_root_package_dir
from torch.utils import cpp_extension

from interop.build.cuda import is_cuda, uses_cuda
from interop.build.extension import Extension, apply_distutils_lines
from interop.cython.extensions import is_cython
from interop.cython.translate import TranslationError, translate
from interop.jit import manifest, surroundings
from interop.jit.cache import root
from interop.jit.compiler import CommandFailedError, Compiler
from interop.jit.diagnose import Generated, diagnose
from interop.jit.errors import BuildError, message_of
from interop.jit.objects import compile_cuda_sources, compile_source, included
from interop.jit.recipe import Recipe
from interop.jit.shadows import is_fixed, of_libraries, on_path, shadowing
from interop.jit.support import BOOTSTRAPPED, NATIVE, precompiled, support

__all__ = ["build"]

_INITIALISED = (
    "name a .pyx, or in C++ write PYBIND11_MODULE or PyInit_ with TORCH_EXTENSION_NAME, which is the module's name"
)
# What compilers and linkers say where a disk or a quota is full, or a limit is reached.
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|File too large|File size limit exceeded")


def build(recipe: Recipe, folder: Path, say: Callable[[str], None], verbose: bool, force: bool = False) -> str:
    """Build the module into `folder`, and return the name of its file; a `BuildError` if that fails.

    `say` is called with what is being done. With `force` no object of an earlier build is taken.
    """
    work = _Work(recipe, folder, say, verbose, force)
    try:
        return work.run()
    except TranslationError as error:
        told = BuildError(recipe.name, diagnostics=error.diagnostics, output=error.output)
        raise _labelled(told, recipe, folder) from None
    except BuildError as error:
        raise _labelled(error, recipe, folder) from None
    except CommandFailedError as failed:
        found = diagnose(failed.output, work.generated, lambda path: path in work.written or not is_fixed(path))
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

    def __init__(self, recipe: Recipe, folder: Path, say: Callable[[str], None], verbose: bool, force: bool):
        self.recipe, self.folder, self.say, self.verbose, self.force = recipe, folder, say, verbose, force
        self.generated: list[Generated] = []
        self.written: set[str] = set()  # the files with lines of the user
        self.with_cuda = False
        self.library_dirs: list[str] = []  # the user's
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

            read = self._translate(prepare)
            if not prepared:
                prepare()
            extension = self.extension
            self.with_cuda = any(map(is_cuda, extension.sources)) or (
                torch.version.cuda is not None and uses_cuda(extension)
            )
            self.library_dirs = [one for one in extension.library_dirs if one not in cpp_extension.library_paths()]
            read |= compile_cuda_sources(extension, self.folder, self.say, self.verbose, self.force)
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
                    jobs[output] = pool.submit(compile_source, plain, source, output, self.force)
            wait(jobs.values())
            read = read.union(*(job.result() for job in jobs.values()))
            self.say("linking")
            module, linked = self._link(compiler, [*jobs, *self.extension.extra_objects], shared)
        absent = self._absent(read)
        read |= {path for path in self._own_declarations() if os.path.exists(path)}
        files = {path for path in read | linked | self.written if not is_fixed(path)}
        through = on_path((path for path in read if path.endswith(".pxd")), self._searched())
        manifest.write(self.folder, module, files, started, absent=absent, on_path=through, around=self._around())
        return module

    def _compiler(self) -> Compiler:
        return Compiler.of(self.extension, self.verbose)

    def _translate(self, ready: Callable[[], object]) -> set[str]:
        read: set[str] = set()
        for source in [source for source in self.extension.sources if is_cython(source)]:
            self.say("translating")
            cpp = self.folder / f"{self.recipe.name}.cpp"

            def started(info: Any, source: str = source) -> None:
                apply_distutils_lines(info, source, self.extension)
                ready()

            translation = translate(
                source,
                self.extension.name,
                cpp,
                declarations=self.folder / "declarations",
                include_path=[os.path.dirname(source), *self.extension.include_dirs],
                directives=self.recipe.options.get("compiler_directives"),
                whole_paths=True,
                started=started,
                annotate="default" if self.recipe.options.get("annotate") else None,
            )
            self.extension.include_dirs = [*translation.include_dirs, *self.extension.include_dirs]
            read |= translation.read
            sources = [source, *sorted(path for path in translation.read if path != source and not is_fixed(path))]
            self.generated.append(Generated(cpp, sources))
            self.extension.sources = [str(cpp) if one == source else one for one in self.extension.sources]
        return read

    def _compile_generated(self, compiler: Compiler, source: str, output: Path, header: tuple[str, ...]) -> set[str]:
        """Compile what Cython wrote, with the texts that come before its first line; return the files included."""
        texts = [name for name in self.recipe.texts if name.endswith(".h")]
        first = (word for name in texts for word in ("-include", str(self.folder / name)))
        compiler.compile(Path(source), output, *header, *first)
        return included(output)

    def _link(self, compiler: Compiler, objects: Iterable[Path | str], shared: Path) -> tuple[str, set[str]]:
        """Link the two files of the module; return the name of the one to import, and what the linker has read."""
        extension = self.extension
        libraries = [f"-l{name}" for name in extension.libraries]
        folders = [f"-L{folder}" for folder in (shared, *extension.library_dirs)]
        # The module runs here and now, so its libraries are where the linker has found them.
        for folder in (*extension.runtime_library_dirs, *self.library_dirs):
            folders += ["-Xlinker", "-rpath", "-Xlinker", folder]
        read = compiler.link(
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
        return module, read

    def _own_declarations(self) -> list[str]:
        """Where Cython looks for the .pxd of the module itself."""
        return [
            os.path.join(folder, f"{self.recipe.name}.pxd")
            for folder in dict.fromkeys(self._searched())
            if any(map(is_cython, self.recipe.sources)) and not is_fixed(os.path.join(folder, "file"))
        ]

    def _searched(self) -> list[str]:
        """The folders of headers and of declarations."""
        sources = [source for source in self.recipe.sources if source not in self.recipe.texts]
        packages = [find_root_package_dir(source) for source in sources]
        return [*map(os.path.dirname, sources), *packages, *self._compiler().searched]

    def _absent(self, read: set[str]) -> list[str]:
        """The files that would be read if they were there."""
        extension = self.extension
        declared = [path for path in read if path.endswith(".pxd")]
        found = shadowing(read.difference(declared), self._searched())
        found += shadowing(declared, [*self._searched(), *sys.path])
        found += of_libraries(extension.libraries, extension.library_dirs, extension.extra_link_args)
        return [*found, *(path for path in self._own_declarations() if not os.path.exists(path))]

    def _around(self) -> list[str]:
        """What the build depends on beside the files and what is in the key."""
        extra = self.extension.extra_compile_args
        flags = [flag for words in extra.values() for flag in words] if isinstance(extra, dict) else []
        compiler = self._compiler()
        found = [surroundings.CPU] if surroundings.is_native([*flags, *compiler.flags, *compiler.macros]) else []
        return [*found, surroundings.CUDA] if self.with_cuda else found


def _labelled(error: BuildError, recipe: Recipe, folder: Path) -> BuildError:
    """With the names that the user knows for what became files in the cache."""
    names = {str(folder / name): label for name, label in recipe.labels.items()}
    found = [replace(one, path=names.get(one.path or "", one.path)) for one in error.diagnostics]
    same = BuildError(recipe.name, diagnostics=found, output=error.output, command=error.command)
    return same if found else error


def _last_words(failed: CommandFailedError) -> str:
    lines = failed.output.strip().splitlines() or [f"{failed.command[0]} ended with status {failed.status}"]
    return lines[-1]
