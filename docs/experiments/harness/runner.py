"""Runs all experiments, each in a process of its own, goes on after a failure, and sums up at the end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from experiments import names
from experiments.harness.building import BUILD
from experiments.harness.display import progress, say, show
from experiments.harness.driver import UNAVAILABLE
from experiments.harness.results import WRITTEN
from experiments.harness.tables import Table
from interop.cli import FAILED

__all__ = ["run_all"]

COMMAND = (sys.executable, "-m", "interop", "experiments")
_ERROR = "error: "  # as interop.__main__ prints a CommandError


@dataclass(frozen=True)
class Outcome:
    """How the run of one experiment ended: "ok", "failed" or "skipped", and what it wrote or said last."""

    name: str
    seconds: float
    how: str
    detail: str
    log: Path


def run_all(arguments: list[str]) -> int:
    """Run every experiment with the command line `arguments`; the exit status of the whole.

    One process each: what an experiment imports, compiles and sets can then not change another's figures.
    """
    outcomes = []
    chosen = names()
    with progress("experiments", len(chosen), lines=0) as shown:
        for number, name in enumerate(chosen, 1):
            say(f"{number}/{len(chosen)} {name}")
            outcome = _run(name, arguments, lambda line, name=name: shown(f"{name}: {line}", 0))
            outcomes.append(outcome)
            say(f"    {outcome.how}, {outcome.seconds:.0f} s")
            if outcome.how == "failed":
                say(_tail(outcome.log))
            shown("")
    head = ("experiment", "seconds", "ended", "where the result is, or why there is none")
    show(Table(head, [[o.name, f"{o.seconds:.0f}", o.how, o.detail] for o in outcomes], words=(0, 2, 3)))
    count = {how: sum(outcome.how == how for outcome in outcomes) for how in ("ok", "failed", "skipped")}
    said = ", ".join(f"{number} {how}" for how, number in count.items() if number)
    say(f"{said}; {sum(outcome.seconds for outcome in outcomes):.0f} s")
    return FAILED if count["failed"] else 0


def _run(name: str, arguments: list[str], shown: Callable[[str], None]) -> Outcome:
    log = BUILD / name / "run.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    last, written = "", ""
    with log.open("w", encoding="utf-8", buffering=1) as file:
        process = subprocess.Popen(
            [*COMMAND, name, *arguments],
            env=os.environ | {"PYTHONUNBUFFERED": "1"},  # else its lines come when it ends
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        with process, _ended(process):
            for line in process.stdout or ():
                file.write(line)
                if line.strip():
                    last = line.strip()
                    shown(last)
                if line.startswith(WRITTEN):
                    written = line.removeprefix(WRITTEN).partition(" and ")[0].strip()
    how = {0: "ok", UNAVAILABLE: "skipped"}.get(process.returncode, "failed")
    why = last.removeprefix(_ERROR) or f"exit status {process.returncode}"
    if process.returncode < 0:
        why = f"ended by signal {-process.returncode}: {signal.strsignal(-process.returncode)}"
    if how == "failed":
        why = f"{why} (all of it: {os.path.relpath(log)})"
    return Outcome(name, time.perf_counter() - started, how, written if how == "ok" else why, log)


@contextmanager
def _ended(process: subprocess.Popen) -> Iterator[None]:
    """Ends a process together with what waits for it, if that is interrupted."""
    try:
        yield
    except BaseException:
        process.terminate()
        raise


def _tail(log: Path, lines: int = 15) -> str:
    """The end of a log, set in, to be read where only the output of this process is kept."""
    text = log.read_text(encoding="utf-8").splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in text)
