"""The machine, the versions and the commit of a result. Without them a figure means nothing."""

import importlib.metadata
import os
import platform
import re
import subprocess
import sysconfig
from datetime import UTC, datetime
from pathlib import Path

import torch

import interop
from experiments import CHECKOUT
from interop import _core

__all__ = ["WITHOUT_GIL", "environment", "machine_name"]

WITHOUT_GIL = "-free-threaded"
"""What the name of a machine ends with where its CPython was built to run without a GIL."""

_WRITTEN = ("docs/experiments/*/results/**", "docs/experiments/*/README.md", "docs/experiments/index.md")
_SOURCES = [".", *(f":(exclude,glob){path}" for path in _WRITTEN)]
"""As git's pathspecs: all files but results, plots and the pages that they are written into."""


def environment() -> dict:
    """Machine, versions, commit and date, as they go into a result."""
    compiled = _core.build_info()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": {
            "cpu": _cpu(),
            "cores": _cores(),
            "architecture": platform.machine(),
            "system": platform.system(),
            "load": round(os.getloadavg()[0], 2),  # of the last minute: what else was running
        },
        "versions": {
            "torch": torch.__version__,
            "Cython": importlib.metadata.version("Cython"),
            "Python": platform.python_version() + ("t" if _free_threaded() else ""),
            "compiler": compiled["compiler"],
            "torch-interop": interop.__version__,
        },
        "git": _git(),
    }


def machine_name(gpu: str = "") -> str:
    """A file name for this machine's results, such as ``amd-epyc-2-cores``, or for those of its `gpu`.

    With a free-threaded CPython it ends with `WITHOUT_GIL`.
    """
    cpu = re.sub(r"\(R\)|\(TM\)|CPU|Processor|@.*", "", _cpu())
    name = (gpu or f"{cpu} {_cores()} cores") + (WITHOUT_GIL if _free_threaded() else "")
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _free_threaded() -> bool:
    """Whether this CPython was built to run without a GIL."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(errors="replace"), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    """The processors that this process may use; in a container, these are not all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _git() -> dict | None:
    """The commit, and whether files differ from it; None outside a repository or without git.

    What ``--record`` writes does not count: the second of two experiments in a row has the same sources as the first.
    """
    try:
        commit, changes = (
            subprocess.run(["git", *command], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", *_SOURCES])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "changed": bool(changes)}
