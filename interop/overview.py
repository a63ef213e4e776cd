"""What ``python -m interop`` says without a command: whether all is ready, and what can be done next."""

import shlex
from pathlib import Path

from interop.cli import CommandError
from interop.config import installed
from interop.experiments import DOCS

__all__ = ["overview"]


def overview() -> str:
    """A few lines about this environment and the current folder, for which torch is not imported."""
    try:
        version, torch = installed()
    except CommandError as error:
        return f"Not ready: {error}"
    sources = sorted(path.name for path in Path().glob("*.pyx"))
    if Path("setup.py").is_file() or Path("CMakeLists.txt").is_file():
        steps = {"pip install --no-build-isolation .": "compile and install the project in this folder"}
    elif sources:
        load = f"import interop; print(interop.load({sources[0]!r}))"
        steps = {f"python -c {shlex.quote(load)}": "compile that module and import it"}
    else:
        steps = {"python -m interop new cells": "write a project that builds, tests and installs as it is"}
    if DOCS.is_dir():  # a checkout
        steps["python -m interop experiments lltm"] = "train a cell in Cython, beside its twins in Python and C++"
    steps["python -m interop doctor"] = "look at the compiler and all else that builds need"
    width = max(map(len, steps))
    lines = [f"  {step:<{width}}  # {purpose}" for step, purpose in steps.items()]
    return "\n".join([f"torch-interop {version} is ready, for torch {torch.version}. Next:", *lines])
