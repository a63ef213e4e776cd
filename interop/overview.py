"""The text of ``python -m interop`` without a command: whether everything is ready, and what to do next."""

import shlex
from pathlib import Path

from interop.cli import CommandError
from interop.config import installed
from interop.experiments import DOCS

__all__ = ["overview"]


def overview() -> tuple[str, bool]:
    """A few lines about this environment and the current folder, and whether it is ready. Does not import torch."""
    try:
        version, torch = installed()
    except CommandError as error:
        return f"Not ready: {error}", False
    sources = sorted(path.name for path in Path().glob("*.pyx"))
    steps = {}
    checkout = (DOCS / "experiments").is_dir()  # an sdist has other files in docs
    if checkout and Path().resolve() == DOCS.parent:  # it is installed already
        steps["make demo"] = "train a cell in Python, C++ and Cython, in a minute or two"
    elif Path("setup.py").is_file() or Path("CMakeLists.txt").is_file():
        steps = {"pip install --no-build-isolation .": "compile and install the project in this folder"}
    elif sources:
        load = f"import interop; print(interop.load({sources[0]!r}))"
        quoted = shlex.quote(load) if set(load) & set('"$`\\!') else f'"{load}"'
        steps = {f"python -c {quoted}": "compile that module and import it"}
    elif Path("cells", "setup.py").is_file():
        steps = {"cd cells && pip install --no-build-isolation .": "compile and install the project in that folder"}
    else:
        steps = {"python -m interop new cells": "write a project that is ready to build, test and install"}
    if checkout:
        steps["python -m interop experiments lltm"] = "train a cell in Cython, and the same in Python and C++"
    steps["python -m interop doctor"] = "check the compiler and everything else that builds need"
    width = max(map(len, steps))
    lines = [f"  {step:<{width}}  # {purpose}" for step, purpose in steps.items()]
    return "\n".join([f"torch-interop {version} is ready, for torch {torch.version}. Next:", *lines]), True
