"""The experiments: each folder here that has a run.py. `harness` runs them, for ``python -m interop experiments``.

Python finds this package where `docs` is on its path: that command, pytest and `variables` see to it.
"""

import importlib
import os
from pathlib import Path
from types import ModuleType

from interop.cli import USAGE, CommandError

__all__ = ["CHECKOUT", "FOLDER", "load", "names", "variables"]

FOLDER = Path(__file__).resolve().parent
CHECKOUT = FOLDER.parents[1]


def names() -> list[str]:
    """The experiments that there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/run.py"))


def load(name: str, module: str = "run") -> ModuleType:
    """Import a module of the experiment `name`."""
    known = names()
    if name not in known:
        raise CommandError(f"there is no experiment {name!r}; there are: {', '.join(known)}", USAGE)
    return importlib.import_module(f"{__name__}.{name}.{module}")


def variables() -> dict[str, str]:
    """The environment variables of another process that imports this package."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(FOLDER.parent), os.environ.get("PYTHONPATH")]))}
