"""Imports a compiled module from its file, beside others that were built from the same source.

The bodies of modules run under no lock but Python's own. Each file is imported through Python's import system under a
name that no other import has, so that a thread waits for another which imports the same file, and a circle of threads
and packages that wait for one another is noticed, as Python notices it for modules of its own.
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
"""The mark in a module which has registered operators; see csrc/registry.cpp."""


@dataclass(eq=False)
class _Import:
    """The import of one file, which may be under way in some thread."""

    name: str
    path: Path
    origin: str | None
    alias: str
    thread: int = field(default_factory=threading.get_ident)  # that which runs the body
    module: ModuleType | None = None  # also while its body runs
    done: bool = False


@dataclass(eq=False)
class _Name:
    """What this process knows of a module's name."""

    origin: str | None  # the file of the module's source; None for a text
    modules: list[ModuleType] = field(default_factory=list)  # in the order in which they were begun
    current: ModuleType | None = None

    def is_ours(self, module: ModuleType) -> bool:
        return any(module is one for one in self.modules)

    def is_superseded(self, module: ModuleType) -> bool:
        """Whether the operators of a module are no longer in force."""
        index = next(index for index, one in enumerate(self.modules) if one is module)
        return _registers(module) and any(map(_registers, self.modules[index + 1 :]))


# Held for a few statements, and never while a body runs. What a collection of garbage then runs may come here again.
_lock = threading.RLock()
_numbers = itertools.count()
_imports: dict[Path, _Import] = {}
_by_alias: dict[str, _Import] = {}
_names: dict[str, _Name] = {}


def check_name(name: str, origin: str | None) -> None:
    """Raise ValueError if `name` is that of another module: of somebody else's, or of one with its source elsewhere."""
    with _lock:
        before = sys.modules.get(name)
        if before is None:
            return
        known = _names.get(name)
        advice = f"give another, or take that module out first: del sys.modules[{name!r}]"
        if known is None or not known.is_ours(before):
            where = getattr(before, "__file__", None) or "built in"
            raise ValueError(f"the name {name!r} is that of a module that is imported already ({where}); give another")
        if known.origin != origin and (known.origin is None or os.path.exists(known.origin)):
            where = known.origin or "a text"
            raise ValueError(f"the name {name!r} is that of the module made from {where}; {advice}")


class ImportState(enum.IntEnum):
    """Whether a file is imported; of two files that serve as well, the higher is taken."""

    SUPERSEDED = 0
    """The module must run again, which it cannot in the same file; a copy of it can."""
    NEW = 1
    IMPORTED = 2


def import_state(path: Path) -> ImportState:
    """The state of the module in the file `path`.

    One that registers operators is superseded if another state of it has registered its own since: each takes away what
    the one before it has registered. And so is one whose import another thread had begun when this process was forked.
    """
    with _lock:
        one = _imports.get(path)
        if one is None:
            return ImportState.NEW
        if one.alias not in _by_alias or (one.module is not None and _names[one.name].is_superseded(one.module)):
            return ImportState.SUPERSEDED
        return ImportState.IMPORTED


def import_from(name: str, path: Path, origin: str | None = None) -> ModuleType:
    """The module `name` in the file `path`; the same object as long as it is the same file.

    It takes the place in `sys.modules` of another state of itself, but not of any other module. `origin` is the file of
    its source. Where its body is still running, in this thread or in one that waits for this one, it is not complete,
    as in any circle of imports.
    """
    with _lock:
        one = _imports.get(path)
        if one is None:
            one = _Import(name, path, origin, f"{PREFIX}{next(_numbers)}")
            _imports[path] = _by_alias[one.alias] = one
    if not one.done:
        __import__(one.alias)  # not importlib's function, which gives up where a circle is noticed
    with _lock:
        module = one.module
        if module is None:
            raise ImportError(f"module {name!r} is not there yet: it is imported in a circle", name=name)
        known = _names[name]
        before = sys.modules.get(name)
        if one.done and (before is None or known.is_ours(before)):
            sys.modules[name] = known.current = module
            known.origin = origin
    return module


class _Finder:
    """Finds the imports that are under way by the names that they have for Python's import system."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        one = _by_alias.get(fullname)
        return None if one is None else importlib.machinery.ModuleSpec(fullname, _Loader(one))


@dataclass(frozen=True)
class _Loader(importlib.abc.Loader):
    """Runs the import that a module stands for."""

    one: _Import

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Python's own will do."""

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
    """Gives the name back to whoever had it before an import that failed."""
    failed, one.module = one.module, None
    if failed is None:
        return
    known = _names[one.name]
    if not _registers(failed):  # else it has taken away what the one before it had registered
        known.modules = [module for module in known.modules if module is not failed]
    if sys.modules.get(one.name) is failed:
        del sys.modules[one.name]
        if known.current is not None:
            sys.modules[one.name] = known.current


def _explained(one: _Import, error: BaseException) -> BuildError | None:
    """What the loader's message about a file means; None if the message is about something else.

    The body of a module that was loaded may raise the like, about others that it imports.
    """
    if not isinstance(error, ImportError):
        return None
    symbol = re.search(r"undefined symbol: (\w+)", str(error))
    library = re.search(r"([^\s(]+): cannot open shared object file", str(error))
    if symbol:
        reason = f"{demangle(symbol[1]) or symbol[1]} is declared and used, but no source and no library defines it"
    elif library and Path(library[1]).parent != one.path.parent:  # else somebody has removed the module itself
        reason = (
            f"its library {library[1]} is not found when it is imported; name the library's folder in library_dirs, "
            "where the module looks for it as well, or in the environment variable LD_LIBRARY_PATH before Python starts"
        )
    else:
        return None
    return BuildError(one.name, reason, output=str(error))


def _abandon() -> None:
    """In a child process: what other threads were importing, nobody will import to its end."""
    for one in _imports.values():
        if not one.done and one.thread != threading.get_ident():
            _by_alias.pop(one.alias, None)
            _withdraw(one)
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_abandon)
