"""Writes results as JSON with a plot beside each, and the part of a README.md that is made from them."""

import json
import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import ModuleType

from interop.cli import CommandError
from interop.experiments import FOLDER
from interop.experiments.building import BUILD
from interop.experiments.display import say
from interop.experiments.environment import machine_name

__all__ = [
    "WRITTEN",
    "conditions",
    "date_and_commit",
    "keep",
    "markdown_table",
    "read",
    "read_recorded",
    "refresh_readme",
    "render",
    "units",
    "with_section",
    "write",
]

BEGIN = "<!-- results: written by `python -m interop experiments {name} --render` -->"
END = "<!-- end of results -->"

WRITTEN = "written: "
"""What the line about a result begins with; `runner` looks for it."""


def destination(name: str, record: bool, machine: str | None = None) -> Path:
    """The JSON file for a result of this machine: to be committed, or below build."""
    if record:
        return FOLDER / name / "results" / f"{machine or machine_name()}.json"
    return BUILD / name / "result.json"


def write(path: Path, result: dict, draw: Callable[[dict, Path], None]) -> None:
    """Write `result` to `path`, and let `draw` put a plot beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=2, allow_nan=False)
    # Arrays of numbers on one line each, so that a thousand losses are not a thousand lines.
    text = re.sub(r"\[\s+([^\[\]{}\"]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    path.write_text(text + "\n", encoding="utf-8")
    draw(result, path.with_suffix(".png"))


def keep(name: str, result: dict, report: ModuleType, *, record: bool, machine: str | None = None) -> None:
    """Write `result` with its plot to where `destination` says, into README.md as well if it is recorded; say where.

    `machine` names the file where it is not the processor that matters.
    """
    path = destination(name, record, machine)
    write(path, result, report.draw)
    if record:
        refresh_readme(name, report.section)
    say(f"{WRITTEN}{os.path.relpath(path)} and {path.with_suffix('.png').name} beside it")


def render(name: str, report: ModuleType) -> None:
    """Make the plots and README.md of the experiment `name` again from the recorded results."""
    recorded = read_recorded(name)
    for machine, result in recorded.items():
        report.draw(result, FOLDER / name / "results" / f"{machine}.png")
    refresh_readme(name, report.section)
    say(f"{WRITTEN}{os.path.relpath(FOLDER / name / 'README.md')} and its plots, {len(recorded)}")


def read_recorded(name: str) -> dict[str, dict]:
    """The committed results of the experiment `name`, by machine."""
    return read(FOLDER / name / "results")


def read(folder: Path) -> dict[str, dict]:
    """The results in `folder`, by the stems of their file names."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def refresh_readme(name: str, section: Callable[[str, dict], str]) -> None:
    """Write the results into the README.md of the experiment `name`."""
    readme = FOLDER / name / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = with_section(name, old, section)
    if new != old:
        readme.write_text(new, encoding="utf-8")


def with_section(name: str, readme: str, section: Callable[[str, dict], str]) -> str:
    """The text `readme` with its results replaced by those that are recorded: ``section(machine, result)`` of each."""
    begin = BEGIN.format(name=name)
    if begin not in readme or END not in readme:
        raise CommandError(f"the README.md of experiment {name} needs the lines {begin!r} and {END!r}")
    before, _, rest = readme.partition(begin)
    after = rest.partition(END)[2]
    sections = [section(machine, result).strip() for machine, result in read_recorded(name).items()]
    return "\n\n".join([before + begin, *(sections or ["Nothing is recorded yet."]), END]) + after


def conditions(result: dict) -> str:
    """What a result was measured with, for its README.md."""
    machine, versions = result["machine"], result["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores (load {machine['load']} at the start); torch {versions['torch']}, "
        f"Cython {versions['Cython']}, Python {versions['Python']}, {versions['compiler']}, "
        f"{' '.join(result['flags'])}; {date_and_commit(result)}."
    )


def date_and_commit(result: dict) -> str:
    """When a result was measured, and with which sources."""
    commit = result["git"]
    if not commit:
        return result["date"]
    return f"{result['date']}, commit {commit['commit'][:10]}{' with changes' if commit['changed'] else ''}"


def markdown_table(head: Sequence[str], rows: list[list[str]], words: Collection[int] = (0,)) -> str:
    """A table for README.md. The columns `words` are words, the others numbers."""
    lines = [f"| {' | '.join(line)} |" for line in (head, *rows)]
    rule = "|".join("---" if index in words else "--:" for index in range(len(head)))
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def units(result: dict) -> list[tuple[str, dict[str, dict[str, float]]]]:
    """The figures of single calls, by what they do and how: median times, and instructions if they were counted."""
    times = {what: {how: time["median"] for how, time in ways.items()} for what, ways in result["times"].items()}
    return [("time", times), *([("instructions", result["instructions"])] if result["instructions"] else [])]
