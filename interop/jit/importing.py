"""Import a compiled module from its file, beside other builds of the same source.

Module bodies run under no lock but Python's own. Each file is imported through Python's import system under a unique
name. So a thread waits for another thread that imports the same file. Python detects a cycle of threads and packages
that wait for one another, as for its own modules.
"""

import enum
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from interop.demangle import demangle
from interop.jit.diagnostics import BuildError

__all__ = ["ImportState", "check_name", "import_from", "import_state"]

PREFIX = "_interop_jit_import_"
REGISTERS = "__interop_registers__"
"""The mark in a module that has registered operators; see csrc/registry.cpp."""


@dataclass(eq=False)
class _Import:
    """The import of one file, which a thread may be running."""

    name: str
    path: Path
    origin: str | None
    alias: str
    thread: int = field(default_factory=threading.get_ident)  # the thread that runs the body
    module: ModuleType | None = None  # also set while its body runs
    done: bool = False


@dataclass(eq=False)
class _Name:
    """The record of a module's name in this process."""

    origin: str | None  # the file of the module's source; None for a text
    modules: list[ModuleType] = field(default_factory=list)  # in the order in which their bodies started
    current: ModuleType | None = None

    def is_ours(self, module: ModuleType) -> bool:
        return any(module is one for one in self.modules)

    def is_superseded(self, module: ModuleType) -> bool:
        """Whether a later module has replaced the operators that `module` registered."""
        index = next(index for index, one in enumerate(self.modules) if one is module)
        return _registers(module) and any(map(_registers, self.modules[index + 1 :]))


# Held for a few statements, never while a body runs. Reentrant, because garbage collection may run code that takes it
# again.
_lock = threading.RLock()
_numbers = itertools.count()
_imports: dict[Path, _Import] = {}
_by_alias: dict[str, _Import] = {}
_names: dict[str, _Name] = {}


def check_name(name: str, origin: str | None) -> None:
    """Raise ValueError if `name` belongs to a module that is not ours, or to one of ours with another source."""
    with _lock:
        before = sys.modules.get(name)
        if before is None:
            return
        known = _names.get(name)
        advice = f"give another name, or remove that module first: del sys.modules[{name!r}]"
        if known is None or not known.is_ours(before):
            where = getattr(before, "__file__", None) or "built in"
            raise ValueError(
                f"the name {name!r} belongs to a module that is imported already ({where}); give another name"
            )
        if known.origin != origin and (known.origin is None or os.path.exists(known.origin)):
            where = known.origin or "source text"
            raise ValueError(f"the name {name!r} belongs to the module made from {where}; {advice}")


class ImportState(enum.IntEnum):
    """Whether a file is imported. Of two equally good files, the higher value wins."""

    SUPERSEDED = 0
    """The module must run again. The same file cannot run twice, but a copy of it can."""
    NEW = 1
    IMPORTED = 2


def import_state(path: Path) -> ImportState:
    """The state of the module in the file `path`.

    A module that registers operators is superseded if a later module of the same name has registered its own, because
    each one replaces the operators of its predecessor. A module that another thread was importing when this process
    was forked is superseded too.
    """
    with _lock:
        one = _imports.get(path)
        if one is None:
            return ImportState.NEW
        if one.alias not in _by_alias or (one.module is not None and _names[one.name].is_superseded(one.module)):
            return ImportState.SUPERSEDED
        return ImportState.IMPORTED


def import_from(name: str, path: Path, origin: str | None = None) -> ModuleType:
    """Import the module `name` from the file `path`; the same file gives the same object.

    The module replaces an earlier one of ours with its name in `sys.modules`, but no other module. `origin` is the
    file of its source. If its body is still running, in this thread or in a thread that waits for this one, the module
    is not complete, as in any import cycle.
    """
    with _lock:
        one = _imports.get(path)
        if one is None:
            one = _Import(name, path, origin, f"{PREFIX}{next(_numbers)}")
            _imports[path] = _by_alias[one.alias] = one
    if not one.done:
        __import__(one.alias)  # not importlib.import_module(), which fails when it detects a cycle
    with _lock:
        module = one.module
        if module is None:
            raise ImportError(f"module {name!r} is not available yet: its import is part of a cycle", name=name)
        known = _names[name]
        before = sys.modules.get(name)
        if one.done and (before is None or known.is_ours(before)):
            sys.modules[name] = known.current = module
            known.origin = origin
    return module


class _Finder:
    """Find our imports for Python's import system, by their unique names."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        one = _by_alias.get(fullname)
        return None if one is None else importlib.machinery.ModuleSpec(fullname, _Loader(one))


@dataclass(frozen=True)
class _Loader(importlib.abc.Loader):
    """Run the import behind a unique name."""

    one: _Import

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        if not self.one.done:
            _run(self.one)


sys.meta_path.append(_Finder)


def _run(one: _Import) -> None:
    loader = importlib.machinery.ExtensionFileLoader(one.name, str(one.path))
    spec = importlib.machinery.ModuleSpec(one.name, loader, origin=str(one.path))
    spec.has_location = True
    with _lock:
        check_name(one.name, one.origin)
        known = _names.setdefault(one.name, _Name(one.origin))
        one.thread = threading.get_ident()
    try:
        module = importlib.util.module_from_spec(spec)
        with _lock:
            one.module = sys.modules[one.name] = module
            known.modules.append(module)
            known.origin = one.origin
        loader.exec_module(module)
    except BaseException as error:
        with _lock:
            loaded = one.module is not None
            _withdraw(one)
        explained = None if loaded else _explained(one, error)
        if explained is None:
            raise
        raise explained from None
    with _lock:
        one.done = True


def _registers(module: ModuleType) -> bool:
    return REGISTERS in vars(module)


def _withdraw(one: _Import) -> None:
    """After a failed import, give the name back to its previous owner."""
    failed, one.module = one.module, None
    if failed is None:
        return
    known = _names[one.name]
    if not _registers(failed):  # otherwise it has replaced the operators of its predecessor
        known.modules = [module for module in known.modules if module is not failed]
    if sys.modules.get(one.name) is failed:
        del sys.modules[one.name]
        if known.current is not None:
            sys.modules[one.name] = known.current


def _explained(one: _Import, error: BaseException) -> BuildError | None:
    """An error that explains the loader's message about a file; None if the message is about something else.

    Call this only for a module that was not loaded: the body of a loaded module may raise similar messages about
    modules that it imports.
    """
    if not isinstance(error, ImportError):
        return None
    symbol = re.search(r"undefined symbol: (\w+)", str(error))
    library = re.search(r"([^\s(]+): cannot open shared object file", str(error))
    if symbol:
        reason = f"{demangle(symbol[1]) or symbol[1]} is declared and used, but no source and no library defines it"
    elif library and Path(library[1]).parent != one.path.parent:  # otherwise the module itself was removed
        reason = (
            f"its library {library[1]} was not found at import; name the library's folder in library_dirs, which the "
            "module also searches, or in the environment variable LD_LIBRARY_PATH before Python starts"
        )
    else:
        return None
    return BuildError(one.name, reason, output=str(error))


def _abandon() -> None:
    """In a child process, drop the imports of other threads, which never finish there."""
    for one in _imports.values():
        if not one.done and one.thread != threading.get_ident():
            _by_alias.pop(one.alias, None)
            _withdraw(one)
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_abandon)
