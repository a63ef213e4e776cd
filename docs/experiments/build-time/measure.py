"""Measures the way from an edit to a module that runs, each time in a new process."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from experiments import FOLDER
from experiments.harness.calls import summary
from interop.cli import CommandError
from interop.jit.cache_folder import Entry

NAME = "build-time"
FLAGS = ["-std=c++20", "-O2", "-g0"]
WAYS = {"interop": "scaled_cython.pyx", "cpp_extension": "scaled_pybind11.cpp"}
TRANSLATED = ("none", "any_t", "fused")
"""The imports of translating.py alone, its function with instances that C++ makes, and with fused types."""
SITUATIONS = ("cold", "edited", "edited again", "unchanged")
"""Nothing is kept; all but the source is; the same, where the process has loaded an edit before; the source is, too.

A quick run leaves out what is edited again: each edit is another half a minute for cpp_extension."""


def measure(rounds: int, cold: int, shown: Callable[[str], None]) -> dict:
    """Seconds, mebibytes and disk space by situation and way, of which `cold` rounds begin with nothing.

    Without any of one kind, the loads whose memory was measured stand for them.
    """
    seconds = {what: {way: [] for way in WAYS} for what in SITUATIONS if rounds or what != "edited again"}
    memory = {what: {} for what in ("cold", "edited")}
    with tempfile.TemporaryDirectory() as place:
        folders = {way: Path(place, way) for way in WAYS}
        for way, folder in folders.items():
            memory["cold"][way], taken = _peak(_start(way, folder, "0.5"))
            if not cold:
                seconds["cold"][way] += taken
            memory["edited"][way], taken = _peak(_start(way, folder, *(["1.5"] if rounds else ["0.5", "1.5"])))
            if not rounds:
                for what, one in zip(("unchanged", "edited"), taken, strict=True):
                    seconds[what][way].append(one)
            shown(f"memory, {way}")
        for number in range(cold):
            for way, folder in folders.items():
                shutil.rmtree(folder)
                seconds["cold"][way] += _seconds(_start(way, folder, f"{number}.5"))
                shown(f"cold, {way}")
        for number in range(rounds):
            for way, folder in folders.items():
                seconds["edited"][way] += _seconds(_start(way, folder, f"{number}.25"))
                # The first edit is the first load that translates, and so imports Cython.
                unchanged, _, edited = _seconds(_start(way, folder, f"{number}.25", f"{number}.5", f"{number}.75"))
                seconds["unchanged"][way].append(unchanged)
                seconds["edited again"][way].append(edited)
                shown(f"warm, {way}")
        disk = _disk(folders["interop"])
    return {
        "times": {what: {way: summary(values, 4) for way, values in ways.items()} for what, ways in seconds.items()},
        "memory": memory,
        "disk": disk,
    }


def translating(rounds: int, shown: Callable[[str], None]) -> dict[str, dict]:
    """Seconds that Cython takes to translate a function for 9 dtypes and 7 reductions, by `TRANSLATED`."""
    seconds = {way: [] for way in TRANSLATED}
    for _ in range(rounds):
        for way, values in seconds.items():
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, str(FOLDER / NAME / "translating.py"), way, folder]
                values.append(
                    _seconds(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
                )
            shown(f"translating, {way}")
    return {way: summary(values, 4) for way, values in seconds.items()}


def _start(way: str, folder: Path, *factors: str) -> subprocess.Popen:
    """once.py, which loads the source in `folder` with these factors, one after the other."""
    (folder / "build").mkdir(parents=True, exist_ok=True)
    source = Path(shutil.copy(FOLDER / NAME / WAYS[way], folder))
    command = [sys.executable, str(FOLDER / NAME / "once.py"), way, str(source), str(folder / "build"), *factors]
    environment = os.environ | {"INTEROP_CACHE_DIR": str(folder / "cache")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _seconds(process: subprocess.Popen) -> Any:
    out, error = process.communicate()
    if process.returncode:
        raise CommandError(f"loading a module failed: {(error.strip() or 'no output').splitlines()[-1]}")
    return json.loads(out.splitlines()[-1])


def _peak(process: subprocess.Popen) -> tuple[int, list[float]]:
    """The most mebibytes that a process and all that it started were seen to take together, and `_seconds` of it.

    The kernel's own record of a process that was started by a large one begins with the size of that.
    """
    top = 0
    while process.poll() is None:
        total = 0
        with contextlib.suppress(psutil.Error):  # a process that ends while it is read
            root = psutil.Process(process.pid)
            total = sum(one.memory_info().rss for one in (root, *root.children(recursive=True)))
        top = max(top, total)
        time.sleep(0.02)
    return round(top / (1 << 20)), _seconds(process)


def _disk(folder: Path) -> dict[str, float]:
    """Mebibytes of the precompiled header, and of one module with what was made on the way to it."""
    before = os.environ.get("INTEROP_CACHE_DIR")
    os.environ["INTEROP_CACHE_DIR"] = str(folder / "cache")
    try:
        headers, modules = ([*Entry(kind, "").folder.iterdir()] for kind in ("headers", "modules"))
        sizes = [Entry(path.parent.name, path.name).size() / (1 << 20) for path in (*headers, *modules)]
    finally:
        os.environ.pop("INTEROP_CACHE_DIR")
        if before is not None:
            os.environ["INTEROP_CACHE_DIR"] = before
    return {"header": round(sizes[0], 1), "module": round(sizes[-1], 2)}
