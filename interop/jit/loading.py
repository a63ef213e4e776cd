"""`load` and `load_inline`: find or make the build of a module, and import it."""

import inspect
import keyword
import os
import secrets
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Unpack

from interop.garbage_collection import without_collections
from interop.jit import manifest
from interop.jit.cache_folder import Entry, evict, limit, prepare
from interop.jit.cache_key import Target, cache_key
from interop.jit.diagnostics import BuildError, CacheError, explain_os_error
from interop.jit.importing import ImportState, check_name, import_from, import_state
from interop.jit.options import Options, check_text, checked
from interop.private import (
    NotPrivateError,
    WritableError,
    damaged,
    is_locked,
    make_folders,
    note,
    open_folder,
    remove,
    warn,
)
from interop.toolchain import SUFFIXES

__all__ = ["load", "load_inline"]

MAX_NAME = 200
"""Maximum number of characters of a name, because file names in the cache begin with it."""
MAX_ATTEMPTS = 10
"""Maximum number of times that a load looks for a build that other processes remove before it is imported."""
MAX_BUILDS = 4
"""Maximum number of builds kept of one target. They differ in the included files."""


def load(
    name_or_path: str | os.PathLike[str],
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    *,
    force: bool = False,
    verbose: bool = False,
    **options: Unpack[Options],
) -> ModuleType:
    """Compile a module of Cython, C++ and CUDA sources and import it; import an existing build at once.

    Sources need no ``# distutils:`` or ``# cython:`` lines: they are C++20 at language level 3, compiled with -O2. The
    search path has our declarations, torch's headers, NumPy's if it is cimported, and the folders of the sources. An
    exception that the module raises during its import is passed on.

    Parameters
    ----------
    name_or_path
        The ``.pyx``, which names the module; or a name, with `sources`.
    sources
        Paths of ``.pyx``, ``.cpp`` and ``.cu`` files, at most one of them a ``.pyx``.
    include_dirs, define_macros, libraries, library_dirs, extra_compile_args, extra_link_args
        As for `interop.build.Extension`.
    compiler_directives
        Cython's directives, in addition to `interop.build.DIRECTIVES`.
    annotate
        Write Cython's HTML report about lines that use Python, beside the module's file.
    stable, py_limited_api
        As for `interop.build.Extension`: the module is one file, which also runs with other releases of torch and
        CPython. Loading it here tests a build for other releases.
    free_threaded
        As for `interop.build.Extension`: the module declares that it needs no GIL.
    force
        Build it even if nothing has changed.
    verbose
        Print the commands and their output.

    Returns
    -------
    module
        The module; the same object as before if nothing has changed. An earlier module of that name, built from other
        sources, keeps working where it is in use.

    Raises
    ------
    BuildError
        If the module cannot be built. The message shows the lines that are wrong.
    TypeError, ValueError
        If an argument has the wrong type or an unknown name, a name or a source is not accepted, or the name belongs
        to the module of another source.
    FileNotFoundError
        If a source does not exist.
    """
    path = _path("name_or_path", name_or_path, "a name or a path")
    listed = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    if not isinstance(listed, Iterable):
        raise TypeError(f"sources must be paths, got {sources!r}")
    paths = [_path("sources", source, "paths") for source in listed]
    name = path
    if path.endswith(SUFFIXES) or os.sep in path or (not paths and os.path.splitext(path)[1]):
        paths.insert(0, path)
        name = os.path.basename(path).partition(".")[0]
    _check_sources(name, paths)
    _check_name(name, path, paths)
    target = Target(name, tuple(os.path.abspath(source) for source in paths), options=checked("load", options))
    return _module(target, force, verbose)


def load_inline(
    cython_source: str,
    cpp_source: str | None = None,
    *,
    name: str | None = None,
    force: bool = False,
    verbose: bool = False,
    **options: Unpack[Options],
) -> ModuleType:
    """Compile a module from a string and import it; import an existing build at once.

    Parameters
    ----------
    cython_source
        The text of a ``.pyx``. The whole text may be indented, as inside a function.
    cpp_source
        C++ that precedes Cython's output in the same file. Declare its names in `cython_source` under
        ``cdef extern from *:``.
    name
        The module's name; without it, a hash of the sources. With a name, a changed source replaces the earlier one, in
        `sys.modules` and among the registered operators.
    force, verbose, **options
        As for `load`: include_dirs, define_macros, libraries, library_dirs, extra_compile_args, extra_link_args,
        compiler_directives, annotate, stable, py_limited_api and free_threaded.

    Returns
    -------
    module
        As for `load`.

    Raises
    ------
    BuildError
        As for `load`. Lines are those of ``cython_source`` and ``cpp_source``.
    TypeError, ValueError
        As for `load`. An exception that the module raises during its import is passed on too.
    """
    for argument, text in (("cython_source", cython_source), ("cpp_source", cpp_source)):
        if not isinstance(text, str) and not (argument == "cpp_source" and text is None):
            raise TypeError(f"{argument} must be a string with source code, got {text!r}; for files, use load()")
        try:
            (text or "").encode()
        except UnicodeEncodeError as error:
            wrong = f"{error.object[error.start]!r} at position {error.start}"
            raise ValueError(f"{argument} must be text that UTF-8 can encode, got {wrong}") from None
    if len(cython_source.split()) == 1 and cython_source.strip().endswith(SUFFIXES):
        raise ValueError(f"cython_source must be source code, got the path {cython_source!r}; for files, use load()")
    return module_of_text(
        _dedented(cython_source), cpp_source, name, checked("load_inline", options), force=force, verbose=verbose
    )


def _show_options(function: Any) -> None:
    """Make help() and editors show each option, and not ``**options``."""
    signature = inspect.signature(function)
    shown = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    defaults: dict[str, Any] = {"compiler_directives": None, "annotate": False, "free_threaded": False}
    defaults |= {"stable": None, "py_limited_api": None}
    for name, kind in Options.__annotations__.items():
        default = defaults.get(name, ())
        shown.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    function.__signature__ = signature.replace(parameters=shown)


_show_options(load)
_show_options(load_inline)


def _dedented(text: str) -> str:
    """A text without its common indentation; a text without one stays unchanged, including its strings."""
    return textwrap.dedent(text) if text.lstrip("\n")[:1] in (" ", "\t") else text


def module_of_text(
    cython_source: str,
    cpp_source: str | None,
    name: str | None,
    options: Mapping[str, object],
    *,
    force: bool,
    verbose: bool,
    label: str = "cython_source",
    prefix: str = "inline",
) -> ModuleType:
    """Build and import a module. Errors call its text `label`. Without a `name`, its name is PREFIX_HASH."""
    title = "" if name else prefix  # a hash says nothing to a reader
    if name is None:
        name = f"{prefix}_{cache_key(cython_source, cpp_source)[:12]}"
    _check_name(name, name, ())
    pyx, header = f"{name}.pyx", f"{name}_source.h"
    texts = {pyx: cython_source} | ({} if cpp_source is None else {header: cpp_source})
    target = Target(name, (pyx,), texts, {pyx: label, header: "cpp_source"}, options, title)
    return _module(target, force, verbose)


def _path(argument: str, given: object, wanted: str) -> str:
    if isinstance(given, (str, os.PathLike)) and isinstance(os.fspath(given), str):
        check_text(argument, os.fspath(given))
        return os.fspath(given)
    raise TypeError(f"{argument} must be {wanted}, got {given!r}")


def _check_name(name: str, given: str, sources: Sequence[str]) -> None:
    if not (isinstance(name, str) and name.isidentifier() and name.isascii()) or keyword.iskeyword(name):
        instead = "".join(c if c.isascii() and c.isalnum() else "_" for c in name) if isinstance(name, str) else ""
        instead = instead if instead.isidentifier() and not keyword.iskeyword(instead) else f"module_{instead}"
        files = [os.fspath(source) for source in sources]
        advice = f"; give one: load({instead!r}, {files!r})" if files else f", such as {instead!r}"
        origin = "" if given == name else f" from {given!r}"
        wanted = "an identifier in ASCII and not a keyword"
        raise ValueError(f"a module's name must be {wanted}, got {name!r}{origin}{advice}")

    if len(name) > MAX_NAME:
        raise ValueError(
            f"a module's name must have at most {MAX_NAME} characters, because files are named after it, and "
            f"{name!r} has {len(name)}; give a shorter one"
        )


def _check_sources(name: str, sources: Sequence[str]) -> None:
    if not sources and not name.isidentifier():
        raise ValueError(f"load needs the path of a .pyx, got {name!r}; for source text, use load_inline(text)")
    if not sources:
        raise ValueError(
            f"load({name!r}) needs sources: load({name!r}, [{name + '.pyx'!r}]), or load({name + '.pyx'!r})"
        )
    for source in sources:
        if not source.endswith(SUFFIXES):
            stem, suffix = os.path.splitext(source)
            advice = f"; to compile Python, rename it to {stem + '.pyx'!r}" if suffix == ".py" else ""
            raise ValueError(f"sources must end in one of {', '.join(SUFFIXES)}, got {source!r}{advice}")
        if not os.path.isfile(source):
            where = "" if os.path.isabs(source) else f"; the current folder is {os.path.realpath('.')!r}"
            raise FileNotFoundError(f"the source {source!r} of module {name!r} does not exist{where}")
    cython = [source for source in sources if source.endswith(".pyx")]
    if len(cython) > 1:
        raise ValueError(f"a module must have one .pyx, got {cython!r}; load the others as modules of their own")


def _module(target: Target, force: bool, verbose: bool) -> ModuleType:
    entry = Entry("modules", f"{target.name}-{target.key()}")
    check_name(target.name, target.origin)  # before a build takes time
    attempts = 0
    while True:
        attempts += 1
        try:
            path = _current(target, entry, force, verbose)
        except BuildError as error:
            # Its message says all; the frames of the build would only push it out of sight.
            raise error.with_traceback(None)  # noqa: B904  (keeps its own cause)
        warn()
        entry.use()
        try:
            return import_from(target.name, path, target.origin)
        except ImportError:
            if path.exists() or attempts == MAX_ATTEMPTS:
                raise
            # Another process has removed it in the meantime to free space.


def _current(target: Target, entry: Entry, force: bool, verbose: bool) -> Path:
    """The file of a current build, which is made if there is none."""
    try:
        prepare(target.name)
        path = None if force else _find(entry, target.made)
        if path is None:
            return _build(target, entry, force, verbose)
        if import_state(path) is ImportState.SUPERSEDED:
            return _copy(entry, target.made) or _build(target, entry, force, verbose)
        return path
    except NotPrivateError as error:
        raise CacheError(target.name, str(error)) from None
    except OSError as error:
        raise BuildError(target.name, explain_os_error(error)) from error


def _find(entry: Entry, needed: Sequence[str]) -> Path | None:
    """The file of a current build with the files `needed`: one that this process has imported, or the newest."""
    if entry.folder.is_symlink() or (entry.folder.exists() and not entry.folder.is_dir()):
        note(damaged(entry.folder))  # the next build removes it, under the lock
        return None
    try:
        folders = sorted(entry.folder.iterdir(), key=lambda folder: folder.lstat().st_mtime, reverse=True)
    except OSError as error:
        if isinstance(error, PermissionError) and is_locked(entry.folder):
            note(damaged(entry.folder))
        return None
    try:
        builds = [(folder, made) for folder in folders if (made := manifest.read(folder, needed))]
        for folder, made in sorted(builds, key=lambda build: import_state(build[0] / build[1].module), reverse=True):
            if made.is_current() and made.is_whole(folder):
                return folder / made.module
    except manifest.DamagedError:
        pass  # the next build removes it, under the lock
    return None


def _copy(entry: Entry, needed: Sequence[str]) -> Path | None:
    """Copy a module that must run again, because the loader does not load a file twice."""
    with entry.exclusive():
        path = _find(entry, needed)
        if path is None or import_state(path) is not ImportState.SUPERSEDED:
            return path  # changed by the previous holder of the lock
        os.utime(path.parent)  # so that it is not among the oldest builds, which are removed
        folder = _new_folder(entry, needed)
        shutil.copytree(path.parent, folder, dirs_exist_ok=True)
        os.utime(folder)
        return folder / path.name


def _build(target: Target, entry: Entry, force: bool, verbose: bool) -> Path:
    bound = limit()
    with (
        _progress(target.title or target.name) as report,
        entry.exclusive(lambda: report("another process is building it")),
        without_collections(),
    ):
        path = None if force else _find(entry, target.made)
        if path is not None:
            return path  # built by the previous holder of the lock
        folder = _new_folder(entry, target.made)
        try:
            from interop.jit.build import build  # imported here, because existing builds need no Cython

            module = build(target, folder, report, verbose, force)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        evict(bound)  # while the lock keeps this build from eviction
        return folder / module


@contextmanager
def _progress(name: str) -> Iterator[Callable[[str], None]]:
    """Show the progress of the build of `name` on a terminal or in a notebook.

    Yields a function to call with the name of each stage. Programs whose standard error is anything else see nothing.
    """
    if type(sys.stderr).__module__ == "ipykernel.iostream":
        with _line_of_a_notebook(name) as report:
            yield report
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console  # imported here, because that takes longer than the rest of a load

        with Console(stderr=True, highlight=False).status(f"{name}: building") as status:
            yield lambda stage: status.update(f"{name}: {stage}")
    else:
        yield lambda stage: None


@contextmanager
def _line_of_a_notebook(name: str) -> Iterator[Callable[[str], None]]:
    """One line below the cell, which each stage replaces. It ends with the duration, or says that the build failed."""
    from IPython.display import display

    def line(said: str) -> dict[str, str]:
        return {"text/plain": f"{name}: {said}"}

    begin = time.monotonic()
    handle = display(line("building"), raw=True, display_id=True)
    ending = "not built"
    try:
        yield lambda stage: handle.update(line(stage), raw=True)
        ending = f"built in {time.monotonic() - begin:.1f} s"
    finally:
        handle.update(line(ending), raw=True)


def _new_folder(entry: Entry, needed: Sequence[str]) -> Path:
    """Make a folder with a new name, because the loader identifies loaded files by their paths."""
    _remove_old_builds(entry.folder, needed)
    folder = entry.folder / secrets.token_hex(4)
    make_folders(folder)
    with open_folder(folder):
        return folder  # no other user can replace it


def _remove_old_builds(folder: Path, needed: Sequence[str]) -> None:
    """Remove the remains of killed builds, damaged builds, and the oldest builds beyond the maximum."""
    if folder.is_symlink():  # what it leads to is not ours to remove
        remove(folder)
        return
    try:
        with open_folder(folder):
            readable = os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=True)
    except (WritableError, FileNotFoundError, NotADirectoryError):
        readable = False
    if not readable:
        remove(folder)
        return
    builds = sorted(folder.iterdir(), key=lambda build: build.lstat().st_mtime, reverse=True)
    complete = [build for build in builds if manifest.find(build, needed)]
    for build in builds:
        if build not in complete[: MAX_BUILDS - 1]:
            remove(build)
