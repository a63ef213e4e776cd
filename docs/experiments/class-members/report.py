"""Shows a result: as tables, as a plot, and as the text of README.md. All are made from the JSON alone."""

import textwrap
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from interop.experiments import results

from . import behaviour, measure, ways

HEAD = ("", *ways.WAYS)
COLOURS = dict(zip(ways.WAYS, ("#e08a1e", "#f0c48a", "#a8632b", "#8a8f98", "#2f6db5", "#3d8f58"), strict=True))


def rows(result: dict) -> list[list[str]]:
    """The lines of the table of figures."""
    memory = [[f"bytes: {what}", *(str(sizes[way]) for way in ways.WAYS)] for what, sizes in result["memory"].items()]
    times = [
        [f"nanoseconds: {what}", *(f"{result['times'][what][way]['median']:.0f}" for way in ways.WAYS)]
        for what in measure.CALLS
    ]
    counts = [
        [f"instructions: {what}", *(f"{result['instructions'][what][way]:.0f}" for way in ways.WAYS)]
        for what in measure.CALLS
        if result["instructions"]
    ]
    return memory + times + counts


def answers(result: dict, questions: dict) -> list[list[str]]:
    """The lines of a table of answers. An error is its type."""
    found = result["behaviour"]
    return [[what, *(found[what][way].partition(":")[0] for way in ways.WAYS)] for what in questions]


def errors(result: dict) -> list[list[str]]:
    """Each message once, with the ways and questions that it comes from."""
    found = {}
    for question, by_way in result["behaviour"].items():
        for way, answer in by_way.items():
            if ":" in answer:
                found.setdefault(answer, {}).setdefault(way, []).append(question)
    lines = []
    for answer, by_way in found.items():
        asked = dict.fromkeys(question for questions in by_way.values() for question in questions)
        lines.append(["; ".join(by_way), "; ".join(asked), f"`{textwrap.shorten(answer, 160, placeholder=' …')}`"])
    return lines


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    parts = [
        results.conditions(result),
        results.markdown_table(("memory and time", *ways.WAYS), rows(result)),
        f"![Nanoseconds of each call](results/{machine}.png)",
    ]
    for title, questions in (
        ("lifetime", behaviour.LIFETIME),
        ("what ends a cycle through the member", behaviour.COLLECTION),
        ("copies, as Cython and pybind11 make the class", behaviour.COPIES),
        ("copies, with a `__reduce__`", behaviour.WITH_REDUCE),
    ):
        parts.append(_table((title, *ways.WAYS), answers(result, questions)))
    parts.append(_table(("way", "question", "the error"), errors(result)))
    return "\n\n".join(parts)


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, what in zip(figure.subplots(3, 2).flat, measure.CALLS, strict=True):
        times = result["times"][what]
        medians = [times[way]["median"] for way in ways.WAYS]
        bars = axes.barh(ways.WAYS, medians, color=[COLOURS[way] for way in ways.WAYS])
        axes.bar_label(bars, [f"{value:.0f}" for value in medians], padding=4, fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(what, loc="left", fontsize=10)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("nanoseconds, median", fontsize=9)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _table(head: tuple[str, ...], lines: list[list[str]]) -> str:
    """A table of words."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))
