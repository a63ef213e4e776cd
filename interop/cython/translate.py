"""From a .pyx to C++, in this process."""

import concurrent.futures.thread  # noqa: F401 (its own hook at a fork, to which a translation gives way, must be older)
import fnmatch
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import setuptools
from Cython import Utils
from Cython.Compiler import Errors
from Cython.Compiler.Main import compile_single
from Cython.Compiler.Options import CompilationOptions, default_options
from Cython.Compiler.Scanning import FileSourceDescriptor

from interop.build.cythonizer import DIRECTIVES, our_rules
from interop.cython.declarations import Dependencies, Selection, select
from interop.cython.hints import HINT
from interop.cython.patches import replaced
from interop.jit.cache import Entry, root
from interop.jit.diagnose import causes
from interop.jit.errors import BuildError, Diagnostic
from interop.paths import get_include, get_pxd_dir

__all__ = ["translate"]

# Cython keeps caches and settings for the whole process, and what we replace in it is replaced for all threads.
_one_at_a_time = threading.RLock()
# A child process would find all that half way, and the lock taken for good; so a fork waits for another thread's
# translation, which waits for nobody.
os.register_at_fork(
    before=_one_at_a_time.acquire, after_in_parent=_one_at_a_time.release, after_in_child=_one_at_a_time.release
)


def translate(
    source: str,
    extension: setuptools.Extension,
    cpp: Path,
    options: Mapping[str, Any],
    stack: ExitStack,
    ready: Callable[[], object],
) -> set[str]:
    """Write the C++ of `source` into the file `cpp`; return the files that were read.

    What its ``# distutils:`` lines say, and the folders of headers that it needs, go into `extension`. They stay as
    long as `stack`. `ready` is called as soon as the flags are known.
    """
    folders = [os.path.dirname(source), *extension.include_dirs]
    with _one_at_a_time, _errors_of_cython(extension.name) as output:
        # Files may have changed since they were last read in this process.
        Utils.clear_function_caches()
        pxd = Path(get_pxd_dir())
        tree = Dependencies([str(pxd), *folders], pxd)
        read = tree.read_by(source)
        chosen = _select(pxd, source, folders, tree, stack)
        include_path = [str(chosen.pxd), *folders]
        _apply_distutils_lines(tree, source, extension)
        ready()
        compilation = CompilationOptions(
            default_options,
            include_path=include_path,
            compiler_directives=DIRECTIVES | options.get("compiler_directives", {}),
            output_file=str(cpp),
            cplus=True,
            annotate="default" if options.get("annotate") else None,
            errors_to_stderr=False,
        )
        with our_rules():
            result = compile_single(source, compilation, full_module_name=extension.name)
        if result.num_errors:
            raise BuildError(extension.name, diagnostics=causes(output.diagnostics), output=str(output))
    # Whose name may have Cython's version in it: __init__.cython-30.pxd.
    if any(fnmatch.fnmatch(path, "*/numpy/__init__.*pxd") for path in read):
        import numpy

        extension.include_dirs.append(numpy.get_include())
    extension.include_dirs.insert(0, str(chosen.include))
    return read


def _select(pxd: Path, source: str, folders: list[str], tree: Dependencies, stack: ExitStack) -> Selection:
    """The declarations and headers for `source`, which nobody removes as long as `stack` lasts."""
    while True:
        chosen = select(pxd, Path(get_include()), [source], folders, root() / "declarations", tree)
        entry = Entry("declarations", chosen.pxd.parent.name)
        stack.enter_context(entry.shared())
        if chosen.pxd.exists():  # else somebody made room just before
            entry.use()
            return chosen


def _apply_distutils_lines(tree: Dependencies, source: str, extension: setuptools.Extension) -> None:
    info = tree.distutils_info(source)
    for line in ("name", "language", "depends", "np_pythran"):  # which are settled, or for setup.py
        info.values.pop(line, None)
    here = os.path.dirname(source)
    for key in ("sources", "include_dirs", "library_dirs", "extra_objects"):
        if key in info.values:
            info.values[key] = [os.path.join(here, path) for path in info.values[key]]
    extra = extension.extra_compile_args
    if isinstance(extra, dict) and "extra_compile_args" in info.values:
        extra["cxx"] = [*extra.get("cxx", ()), *info.values.pop("extra_compile_args")]
    info.apply(extension)


class _Output:
    """What Cython says."""

    def __init__(self):
        self.diagnostics: list[Diagnostic] = []
        self._texts: list[str] = []

    def add(self, error: Errors.CompileError) -> None:
        self._texts.append(str(error))
        message, *more = (error.message_only or "").strip().splitlines() or [""]
        hint = next((line.removeprefix(HINT) for line in more if line.startswith(HINT)), None)
        if error.position is None:
            self.diagnostics.append(Diagnostic(message, hint=hint))
            return
        source, line, column = error.position[:3]
        lines = source.get_lines(error_handling="replace")
        text = lines[line - 1] if 0 < line <= len(lines) else None
        path = getattr(source, "filename", None)
        self.diagnostics.append(Diagnostic(message, path, line, column + 1, text, hint))

    def __str__(self) -> str:
        return "\n".join(self._texts)


@contextmanager
def _errors_of_cython(name: str) -> Iterator[_Output]:
    """Collects errors, and raises what Cython and our own checks raise as a `BuildError`."""
    output = _Output()

    try:
        with (
            _noticed(output),
            # In tracebacks: relative to a folder that is the current one by chance, Python would not find the line.
            replaced(FileSourceDescriptor, "get_relative_path", lambda _: lambda source: Path(source.filename)),
        ):
            yield output
    except SyntaxError as error:
        line = _line(error)
        column = max(error.offset or 1, 1 + len(line) - len(line.lstrip()))
        told = Diagnostic(error.msg, error.filename and os.path.abspath(error.filename), error.lineno, column, line)
        raise BuildError(name, diagnostics=[told], output=str(error)) from None
    except Errors.PyrexError as error:
        if isinstance(error, Errors.CompileError) and not error.reported:
            output.add(error)
        found = causes(output.diagnostics) or [Diagnostic(str(error))]
        raise BuildError(name, diagnostics=found, output=str(output) or str(error)) from error


class _Reported:
    """What Cython notes in an error when it tells of it, and not when it holds it back, perhaps to drop it."""

    def __init__(self, output: _Output):
        self._output = output

    def __get__(self, error: Errors.CompileError, owner: type) -> bool:
        return bool(vars(error).get("reported"))

    def __set__(self, error: Errors.CompileError, value: bool) -> None:
        if value and not vars(error).get("reported"):
            self._output.add(error)
        vars(error)["reported"] = value


@contextmanager
def _noticed(output: _Output) -> Iterator[None]:
    """Collects the errors of which Cython tells; its own function for that is built into the modules that call it."""
    kind: Any = Errors.CompileError
    kind.reported = _Reported(output)
    try:
        yield
    finally:
        del kind.reported


def _line(error: SyntaxError) -> str:
    try:
        with open(error.filename or "", encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()[(error.lineno or 1) - 1]
    except (OSError, IndexError):
        return error.text or ""
