"""Writes results as JSON with a plot beside each, and the part of a README.md that is made from them."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from experiments import FOLDER
from experiments.harness.building import BUILD
from experiments.harness.display import say
from experiments.harness.environment import machine_name
from experiments.harness.tables import Table
from interop.cli import CommandError

__all__ = [
    "WRITTEN",
    "conditions",
    "date_and_commit",
    "keep",
    "paragraphs",
    "plot",
    "read",
    "read_recorded",
    "refresh_readme",
    "render",
    "section",
    "units",
    "with_section",
    "write",
]

BEGIN = "<!-- results: written by `python -m interop experiments {name} --render` -->"
END = "<!-- end of results -->"

WRITTEN = "written: "
"""What the line about a result begins with; `runner` looks for it."""


def destination(name: str, record: bool, gpu: str = "") -> Path:
    """The JSON file for a result of this machine, or of its `gpu`: to be committed, or below build."""
    return FOLDER / name / "results" / f"{machine_name(gpu)}.json" if record else BUILD / name / "result.json"


def write(path: Path, result: dict, draw: Callable[[dict, Path], None]) -> None:
    """Write `result` to `path`, and let `draw` put a plot beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=2, allow_nan=False)
    # Arrays of numbers on one line each, so that a thousand losses are not a thousand lines.
    text = re.sub(r"\[\s+([^\[\]{}\"]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    path.write_text(text + "\n", encoding="utf-8")
    draw(result, path.with_suffix(".png"))


def keep(name: str, result: dict, report: ModuleType, *, record: bool) -> None:
    """Write `result` with its plot to where `destination` says, into README.md as well if it is recorded; say where."""
    path = destination(name, record, result.get("gpu", {}).get("name", ""))
    write(path, result, report.draw)
    if record:
        refresh_readme(name, report)
    say(f"{WRITTEN}{os.path.relpath(path)} and {path.with_suffix('.png').name} beside it")


def render(name: str, report: ModuleType) -> None:
    """Make the plots and README.md of the experiment `name` again from the recorded results."""
    recorded = read_recorded(name)
    for machine, result in recorded.items():
        report.draw(result, FOLDER / name / "results" / f"{machine}.png")
    refresh_readme(name, report)
    say(f"{WRITTEN}{os.path.relpath(FOLDER / name / 'README.md')} and its plots, {len(recorded)}")


def read_recorded(name: str) -> dict[str, dict]:
    """The committed results of the experiment `name`, by machine."""
    return read(FOLDER / name / "results")


def read(folder: Path) -> dict[str, dict]:
    """The results in `folder`, by the stems of their file names."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def refresh_readme(name: str, report: ModuleType) -> None:
    """Write the results into the README.md of the experiment `name`."""
    readme = FOLDER / name / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = with_section(name, old, report)
    if new != old:
        readme.write_text(new, encoding="utf-8")


def with_section(name: str, readme: str, report: ModuleType) -> str:
    """The text `readme` with its results replaced by those that are recorded: the `section` of each.

    Behind them stands what ``ending()`` of the experiment's report.py gives, where there is one: results of no machine.
    """
    begin = BEGIN.format(name=name)
    if begin not in readme or END not in readme:
        raise CommandError(f"the README.md of experiment {name} needs the lines {begin!r} and {END!r}")
    before, _, rest = readme.partition(begin)
    after = rest.partition(END)[2]
    sections = [section(report, machine, result).strip() for machine, result in read_recorded(name).items()]
    ending = report.ending() if hasattr(report, "ending") else ""
    return paragraphs(before + begin, *(sections or ["Nothing is recorded yet."]), ending, END) + after


def section(report: ModuleType, machine: str, result: dict) -> str:
    """The text of README.md about the result of one machine, by the report.py of the experiment.

    It is that of its ``section(machine, result)``, or else what it was measured with, which ``conditions(result)`` may
    say, its tables, the plot, which `PLOT` describes, and its sentences.
    """
    if hasattr(report, "section"):
        return report.section(machine, result)
    said = getattr(report, "conditions", conditions)(result)
    return paragraphs(said, *report.tables(result), plot(machine, report.PLOT), report.sentences(result))


def paragraphs(*parts: str | Table) -> str:
    """A text of these paragraphs, without those that are empty."""
    return "\n\n".join(str(part) for part in parts if part)


def plot(machine: str, shown: str) -> str:
    """The plot of a machine's result, for README.md, with a text that says what it shows."""
    return f"![{shown}](results/{machine}.png)"


def conditions(result: dict, threads: str = "") -> str:
    """What a result was measured with, for its README.md; `threads` is put behind the machine."""
    machine, versions = result["machine"], result["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores (load {machine['load']} at the start){threads}; "
        f"torch {versions['torch']}, Cython {versions['Cython']}, Python {versions['Python']}, "
        f"{versions['compiler']}, {' '.join(result['flags'])}; {date_and_commit(result)}."
    )


def date_and_commit(result: dict) -> str:
    """When a result was measured, and with which sources."""
    commit = result["git"]
    if not commit:
        return result["date"]
    return f"{result['date']}, commit {commit['commit'][:10]}{' with changes' if commit['changed'] else ''}"


def units(result: dict) -> list[tuple[str, dict[str, dict[str, float]]]]:
    """The figures of single calls, by what they do and how: median times, and instructions if they were counted."""
    times = {what: {how: time["median"] for how, time in ways.items()} for what, ways in result["times"].items()}
    return [("time", times), *([("instructions", result["instructions"])] if result["instructions"] else [])]
