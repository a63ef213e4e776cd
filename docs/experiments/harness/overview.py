"""The table of all experiments in index.md: the question, the answer, the plot, and the stacks that it ran on."""

import re
from types import ModuleType

from experiments import load, names
from experiments.harness import age, plots, results
from experiments.harness.tables import Table

__all__ = ["refresh", "with_table"]

BEGIN = "<!-- experiments: written by `python -m interop experiments NAME --render` -->"
END = "<!-- end of experiments -->"

ORDER = (
    "crossing",
    "bridges",
    "build-time",
    "lltm",
    "custom-ops",
    "ufunc",
    "gil",
    "one-binary",
    "class-members",
    "numpy-gradient",
    "monotonic-alignment",
)
"""What is asked first stands first; the others follow by name."""

WIDTH = 320
"""Pixels of a picture in the table: a plot, or its first part. It leads to the page, which has all of it."""


def refresh() -> None:
    """Write the table into index.md, where there is one."""
    path = results.FOLDER / "index.md"
    if path.exists():
        old = path.read_text(encoding="utf-8")
        new = with_table(old)
        if new != old:
            path.write_text(new, encoding="utf-8")


def with_table(text: str) -> str:
    """The text of index.md with a line for each experiment that there is."""
    known = names()
    ordered = [name for name in ORDER if name in known]
    lines = [line(name, load(name, "report")) for name in (*ordered, *(name for name in known if name not in ORDER))]
    return results.replaced("docs/experiments/index.md", text, BEGIN, END, str(Table(HEAD, lines, words=None)))


HEAD = ("question", "answer", "picture", "ran on")


def line(name: str, report: ModuleType) -> list[str]:
    """The cells of one experiment."""
    page = f"{name}/README.md"
    text = (results.FOLDER / page).read_text(encoding="utf-8")
    question = f"[{first_question(text)}]({page})"
    recorded = results.read_recorded(name)
    machine, result = results.newest(recorded)
    if not result:
        return [question, results.NOTHING, "", ""]
    path = results.FOLDER / name / "results" / f"{machine}{results.SUFFIX}"
    picture = first if (first := plots.first_part(path)).exists() else path
    # HTML, because Markdown cannot make an image small.
    source, shown = picture.relative_to(results.FOLDER), report.PLOT.partition(";")[0]
    image = f'<img src="{source}" width="{WIDTH}" alt="{shown}">'
    stacks = {name: results.stack(result) for name, result in recorded.items()}
    if age.BEGIN in text:
        stacks[machine] += f", {age.OLDER}"
    return [question, report.answer(result), f"[{image}]({page})", "; ".join([*stacks.values(), *more_stacks(report)])]


def more_stacks(report: ModuleType) -> list[str]:
    """The stacks of ``stacks()`` in a report.py, which does not read them from the recorded results."""
    return report.stacks() if hasattr(report, "stacks") else []


def first_question(readme: str) -> str:
    """What a page's section "Question" begins with."""
    found = re.search(r"^## Question\n\n([^?]*\?)", readme, re.MULTILINE)
    return " ".join(found[1].split()) if found else ""
