"""Builds a module from its recipe: translates, compiles, links, and writes the manifest last."""

import os
import re
import sysconfig
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import setuptools
import setuptools.errors
import torch

from interop.build.cuda import compile_cuda, cuda, is_cuda, uses_cuda
from interop.build.extension import Extension
from interop.build.translate import is_cython
from interop.jit import manifest
from interop.jit.cache import root
from interop.jit.compiler import CommandFailedError, Compiler
from interop.jit.diagnose import Generated, diagnose
from interop.jit.errors import BuildError
from interop.jit.recipe import Recipe
from interop.jit.support import BOOTSTRAPPED, NATIVE, precompiled, support
from interop.jit.translate import translate
from interop.paths import get_include, get_pxd_dir

__all__ = ["build"]


def build(recipe: Recipe, folder: Path, say: Callable[[str], None], verbose: bool) -> None:
    """Build the module into `folder`; a `BuildError` if that fails.

    `say` is called with what is being done.
    """
    work = _Work(recipe, folder, say, verbose)
    try:
        work.run()
    except BuildError as error:
        raise _labelled(error, recipe, folder) from None
    except CommandFailedError as failed:
        found = diagnose(failed.output, work.generated, work.written)
        reason = "" if found else _last_words(failed)
        error = BuildError(recipe.name, reason, diagnostics=found, output=failed.output, command=failed.command)
        raise _labelled(error, recipe, folder) from None
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

    def run(self) -> None:
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
            objects = self._cuda_objects()
            header, shared = (future.result() for future in prepared)
            self.say("compiling")
            compiler = self._compiler()
            jobs = {}
            for index, source in enumerate(self.extension.sources):
                output = self.folder / f"{index}-{Path(source).stem}.o"
                extra = self._includes(source, header)
                jobs[output] = pool.submit(compiler.compile, Path(source), output, *extra)
            failures = [job.exception() for job in jobs.values()]
            for failure in filter(None, failures):
                raise failure
            self.say("linking")
            module = self._link(compiler, [*jobs, *objects], shared)
            for output in jobs:
                read |= _included(Path(f"{output}.d"))
        files = {path for path in read | self.written if not _is_fixed(path)}
        manifest.write(self.folder, module, files, self._absent(), started)

    def _compiler(self) -> Compiler:
        return Compiler.of(self.extension, self.verbose)

    def _translate(self, ready: Callable[[], object]) -> set[str]:
        read = set()
        for source in [source for source in self.extension.sources if is_cython(source)]:
            self.say("translating")
            cpp = self.folder / f"{self.recipe.name}.cpp"
            read |= translate(source, self.extension, cpp, self.recipe.options, ready)
            sources = [source, *sorted(path for path in read if path != source and not _is_fixed(path))]
            self.generated.append(Generated(cpp, sources))
            self.extension.sources = [str(cpp) if one == source else one for one in self.extension.sources]
        return read

    def _includes(self, source: str, header: tuple[str, ...]) -> tuple[str, ...]:
        """What is included before the first line, in C++ that Cython wrote."""
        if source not in {str(one.cpp) for one in self.generated}:
            return ()
        texts = [name for name in self.recipe.texts if name.endswith(".h")]
        return (*header, *(word for name in texts for word in ("-include", str(self.folder / name))))

    def _cuda_objects(self) -> list[str]:
        extension = self.extension
        wants = any(map(is_cuda, extension.sources))
        if not wants and (torch.version.cuda is None or not uses_cuda(extension)):
            return []
        state = cuda()
        if wants and not state.toolkit:
            raise BuildError(self.recipe.name, f"it has .cu sources, and {state.reason}")
        if state.toolkit:
            self.say("compiling for CUDA")
            extension.include_dirs = [os.path.abspath(folder) for folder in extension.include_dirs]
            compile_cuda(extension, state, self.folder / "cuda", verbose=self.verbose)
        return list(extension.extra_objects)

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


def _included(record: Path) -> set[str]:
    """The headers in a rule for make."""
    text = record.read_text(encoding="utf-8", errors="surrogateescape").partition(":")[2].replace("\\\n", " ")
    words = re.findall(r"(?:\\.|\$\$|[^\s\\])+", text)
    return {re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words}


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
    found = [replace(one, path=names.get(one.path, one.path)) for one in error.diagnostics]
    same = BuildError(recipe.name, diagnostics=found, output=error.output, command=error.command)
    return same if found else error


def _last_words(failed: CommandFailedError) -> str:
    lines = failed.output.strip().splitlines() or [f"{failed.command[0]} ended with status {failed.status}"]
    return lines[-1]
