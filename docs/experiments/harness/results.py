"""Writes results as JSON with a plot beside each, and the parts of a README.md that are made from them.

A page begins with its answer: the sentence of the newest result and its plot. All tables stand further down.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from experiments import FOLDER
from experiments.harness import age
from experiments.harness.building import BUILD
from experiments.harness.display import say
from experiments.harness.environment import WITHOUT_GIL, machine_name
from experiments.harness.tables import Table
from interop.cli import CommandError

__all__ = [
    "WRITTEN",
    "answer",
    "conditions",
    "date_and_commit",
    "keep",
    "newest",
    "paragraphs",
    "plot",
    "read",
    "read_recorded",
    "refresh_readme",
    "render",
    "replaced",
    "section",
    "stack",
    "units",
    "with_results",
    "without_note",
    "write",
]

BEGIN = "<!-- {part}: written by `python -m interop experiments {name} --render` -->"
END = "<!-- end of {part} -->"
PARTS = ("answer", "results")
"""What a README.md has between such lines: what is read first, and all that it comes from."""

SUFFIX = ".svg"
"""The suffix of the plots."""

NOTHING = "Nothing is recorded yet."

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
    draw(result, path.with_suffix(SUFFIX))


def keep(name: str, result: dict, report: ModuleType, *, record: bool) -> None:
    """Write `result` with its plot to where `destination` says, into README.md as well if it is recorded; say where."""
    path = destination(name, record, result.get("gpu", {}).get("name", ""))
    write(path, result, report.draw)
    if record:
        refresh_readme(name, report)
    say(f"{WRITTEN}{os.path.relpath(path)} and {path.with_suffix(SUFFIX).name} beside it")


def render(name: str, report: ModuleType) -> None:
    """Make the plots and README.md of the experiment `name` again from the recorded results."""
    recorded = read_recorded(name)
    for machine, result in recorded.items():
        report.draw(result, FOLDER / name / "results" / f"{machine}{SUFFIX}")
    refresh_readme(name, report)
    say(f"{WRITTEN}{os.path.relpath(FOLDER / name / 'README.md')} and its plots, {len(recorded)}")


def read_recorded(name: str) -> dict[str, dict]:
    """The committed results of the experiment `name`, by machine."""
    return read(FOLDER / name / "results")


def read(folder: Path) -> dict[str, dict]:
    """The results in `folder`, by the stems of their file names."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"), key=lambda path: path.stem)
    }


def newest(recorded: dict[str, dict]) -> tuple[str, dict]:
    """The machine of the newest of some recorded results, and that result; "" and nothing where there is none.

    One with a free-threaded CPython is taken only if there is no other.
    """
    return max(
        recorded.items(),
        key=lambda found: (not found[0].endswith(WITHOUT_GIL), found[1]["date"]),
        default=("", {}),
    )


def refresh_readme(name: str, report: ModuleType) -> None:
    """Write the results into the README.md of the experiment `name`."""
    readme = FOLDER / name / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = with_results(name, old, report)
    if new != old:
        readme.write_text(new, encoding="utf-8")


def with_results(name: str, readme: str, report: ModuleType) -> str:
    """The text `readme` with its answer, and its results, replaced by what is recorded: the `section` of each.

    Behind them stands what ``ending()`` of the experiment's report.py gives, where there is one: results of no machine.
    """
    recorded = read_recorded(name)
    first, result = newest(recorded)
    sections = []
    notes = {machine: age.note(name, machine, other, report.MEASURED) for machine, other in recorded.items()}
    for machine, other in recorded.items():
        sections.append(section(report, other).strip())
        if machine != first:  # the answer has that one's plot and note
            sections += [plot(machine, report.PLOT), emphasized(notes[machine])]
    ending = report.ending() if hasattr(report, "ending") else ""
    written = {
        "answer": answer(report, first, result, notes[first]) if result else NOTHING,
        "results": paragraphs(*(sections or [NOTHING]), ending),
    }
    for part in PARTS:
        begin, end = BEGIN.format(part=part, name=name), END.format(part=part)
        readme = replaced(f"the README.md of experiment {name}", readme, begin, end, written[part])
    return readme


def replaced(page: str, text: str, begin: str, end: str, new: str) -> str:
    """The `text` of a page with `new` between the lines `begin` and `end`."""
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise CommandError(f"{page} needs the lines {begin!r} and {end!r}")
    return paragraphs(before + begin, new, end) + after


def answer(report: ModuleType, machine: str, result: dict, note: str = "") -> str:
    """What a page begins with: ``answer(result)`` of the experiment's report.py, one sentence, the plot, and a note."""
    return paragraphs(f"**{report.answer(result)}**", plot(machine, report.PLOT), emphasized(note))


def emphasized(note: str) -> str:
    """A note in italics, by which `without_note` finds it; "" for no note."""
    return f"*{note}*" if note else ""


def without_note(readme: str) -> str:
    """A page without the note on its result's age, which depends on the history of the checkout."""
    return re.sub(rf"\n\n\*{re.escape(age.BEGIN)}.*\*(?=\n\n)", "", readme)


def section(report: ModuleType, result: dict) -> str:
    """The text of README.md about one result, by the report.py of the experiment.

    It is that of its ``section(result)``, or else what it was measured with, which ``conditions(result)`` may say, its
    tables and its sentences.
    """
    if hasattr(report, "section"):
        return report.section(result)
    said = getattr(report, "conditions", conditions)(result)
    return paragraphs(said, *report.tables(result), report.sentences(result))


def paragraphs(*parts: str | Table) -> str:
    """A text of these paragraphs, without those that are empty."""
    return "\n\n".join(str(part) for part in parts if part)


def plot(machine: str, shown: str) -> str:
    """The plot of a machine's result, for README.md, with a text that says what it shows."""
    return f"![{shown}](results/{machine}{SUFFIX})"


def conditions(result: dict, threads: str = "") -> str:
    """What a result was measured with, for its README.md; `threads` is put behind the machine."""
    machine, versions = result["machine"], result["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores (load {machine['load']} at the start){threads}; "
        f"torch {versions['torch']}, Cython {versions['Cython']}, Python {versions['Python']}, "
        f"{versions['compiler']}, {' '.join(result['flags'])}; {date_and_commit(result)}."
    )


def stack(result: dict) -> str:
    """What a result ran on, in a few words."""
    versions, machine = result["versions"], result["machine"]
    where = result.get("gpu", {}).get("name") or f"{machine['cpu']}, {machine['cores']} cores"
    return f"torch {versions['torch']}, CPython {versions['Python']}, {where}, {result['date']}"


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
