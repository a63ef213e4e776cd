"""Imports a compiled module from its file, beside others that were made of the same source."""

import importlib.machinery
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

from interop.jit.diagnose import undefined
from interop.jit.errors import BuildError

__all__ = ["import_from"]

_importing = threading.RLock()
_loaded: dict[Path, ModuleType] = {}
_by_name: dict[str, ModuleType] = {}


def import_from(name: str, path: Path) -> ModuleType:
    """The module `name` in the file `path`; the same object as long as it is the same file.

    It takes the place in `sys.modules` of another build of itself, but not of a module that is somebody else's.
    """
    with _importing:
        if path in _loaded:
            return _current(name, _loaded[path])
        before = sys.modules.get(name)
        if before is not None and before is not _by_name.get(name):
            where = getattr(before, "__file__", None) or "built in"
            raise ValueError(f"the name {name!r} is that of a module that is imported already ({where}); give another")
        loader = importlib.machinery.ExtensionFileLoader(name, str(path))
        spec = importlib.machinery.ModuleSpec(name, loader, origin=str(path))
        spec.has_location = True
        try:
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            loader.exec_module(module)
        except BaseException as error:
            sys.modules.pop(name, None)
            if before is not None:
                sys.modules[name] = before
            symbol = undefined(str(error)) if isinstance(error, ImportError) else None
            if symbol is None:
                raise
            raise BuildError(
                name, f"{_demangled(symbol)} is declared and used, but no source and no library defines it"
            ) from None
        _loaded[path] = _by_name[name] = module
        return module


def _current(name: str, module: ModuleType) -> ModuleType:
    """A module that was loaded before, which takes its name back from another state of the same source."""
    if sys.modules.get(name) is _by_name.get(name):
        sys.modules[name] = _by_name[name] = module
    return module


def _demangled(symbol: str) -> str:
    try:
        return subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return symbol
