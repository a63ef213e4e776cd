"""Shows a result: as tables, as a plot, and as the text of README.md; and the stacks that one file ran under."""

import json
from pathlib import Path

from experiments import CHECKOUT
from experiments.harness import plots, results
from experiments.harness.tables import Table

from . import ways
from .training import PYTHON

STACKS = CHECKOUT / "docs" / "one-binary.jsonl"
"""A line for each stack, as tests/stable/checks.py prints it, with the date and the commit."""

LABELS = {
    "numel": "numel of a tensor",
    "relu": "at.relu, of 3 numbers",
    "linear": "at.linear, 4 x 8 by 8 x 4",
    "segment_sum": "segment sum, 32 segments",
    "forward": "LLTM forward, 16 x 128",
    "backward": "LLTM backward, 16 x 128",
}
COLOURS = dict(zip(ways.WAYS, ("#e08a1e", "#f3c489", "#c46a9a", "#8f4a06", "#2f6db5", "#8a8f98"), strict=True))
UNITS = {"time": "nanoseconds", "instructions": "instructions"}
SIZES = {"files": "files", "bytes": "KiB", "compressed": "KiB, compressed"}
MEASURED = ("stable",)
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "Dots on a logarithmic scale: the time of each call by each way, over that of the module for one release"


def measured(result: dict) -> list[str]:
    """The ways that a result has: the CPython that it was measured with leaves some out."""
    return [way for way in ways.WAYS if way in result["times"]["numel"]]


def one_file(result: dict) -> str:
    """The way that gives the file of the stacks: its floor is the oldest CPython, if the result has such a way."""
    return next((way for way in ways.FLOORS if way in result["times"]["numel"]), ways.MANY)


def bars(result: dict) -> list[tuple[str, float, float | None]]:
    """What is promised: its name, the most that it may be, and what was measured, None if nothing was."""
    times = {what: {way: time["median"] for way, time in found.items()} for what, found in result["times"].items()}
    compiling = {way: found["g++"] for way, found in result["compiling"].get("small", {}).items()}
    cp311, cp312 = ways.FLOORS

    def ratio(figures: dict[str, float], way: str, other: str) -> float | None:
        return figures[way] / figures[other] if way in figures else None

    found = [
        ("numel, floor cp312, over one release", 1.4, ratio(times["numel"], cp312, ways.ONE)),
        ("numel, floor cp311, over pybind11", 1.0, ratio(times["numel"], cp311, ways.PYBIND11)),
    ]
    for way, floor in ways.FLOORS.items():
        found += [
            (f"{name}, floor {floor}, over one release", 1.45, ratio(times[what], way, ways.ONE))
            for what, name in (("relu", "at.relu"), ("linear", "at.linear"))
        ]
        found.append((f"g++ of a small module, floor {floor}, over one release", 0.5, ratio(compiling, way, ways.ONE)))
    return found


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    way = one_file(result)
    ratios = {what: _median(result, what, way) / _median(result, what, ways.ONE) for what in LABELS}
    least, most = (
        f"{ratios[what]:.2f} ({LABELS[what]})" for what in sorted(ratios, key=ratios.get)[:: len(ratios) - 1]
    )
    stacks = len({(line["torch"], line["python"]) for line in _stacks()})
    return (
        f"One file passed every check under {stacks} stacks of torch and CPython; a call of it takes {least} to {most} "
        "times as long as one of a module for one release."
    )


def tables(result: dict) -> list[Table]:
    """All tables of a result."""
    found = measured(result)
    shown = [Table(("the bar", "at most", "measured", "holds"), [_bar(*bar) for bar in bars(result)], words=(0, 3))]
    shown.append(
        Table(
            ("time over that of one release", *found),
            [
                [label, *(f"{_median(result, what, way) / _median(result, what, ways.ONE):.2f}" for way in found)]
                for what, label in LABELS.items()
            ],
        )
    )
    for unit, figures in results.units(result):
        rows = [[label, *(f"{figures[what][way]:.0f}" for way in found)] for what, label in LABELS.items()]
        shown.append(Table((f"{UNITS[unit]} of a call", *found), rows))
    rows = []
    for key, label in SIZES.items():
        of_ways = [result["files"][way][key] for way in found]
        rows.append([label, *(str(n) if key == "files" else f"{n / 1024:.0f}" for n in of_ways)])
    shown.append(Table(("the kernels' files", *found), rows))
    rows = []
    for module, of_ways in result["compiling"].items():
        for what in ("translate", "g++"):
            seconds = [of_ways[way].get(what) for way in found]
            rows.append([f"{module}, {what}", *("-" if one is None else f"{one:.2f}" for one in seconds)])
    shown.append(Table(("seconds of the processor", *found), rows))
    return shown


def _median(result: dict, what: str, way: str) -> float:
    return result["times"][what][way]["median"]


def _bar(name: str, most: float, value: float | None) -> list[str]:
    if value is None:
        return [name, f"{most:.2f}", "-", "not measured"]
    return [name, f"{most:.2f}", f"{value:.2f}", "yes" if value <= most else "no"]


def sentences(result: dict) -> str:
    """What the ways compute, in sentences."""
    agreement, losses = result["agreement"], result["training"]
    steps = len(losses[PYTHON])
    first, last = losses[PYTHON][0], {way: found[-1] for way, found in losses.items()}
    apart = max(abs(loss - last[PYTHON]) for loss in last.values())
    ours = {last[way] for way in ways.CYTHON if way in last}
    return (
        f"The largest difference of a result from PyTorch is {agreement['largest difference']:.1e}; all ways give "
        f"{'the same bits' if agreement['same bits'] else 'the same up to that'}. In {steps} steps the LLTM's loss "
        f"falls from {first:.4f} to {last[ways.ONE]:.4f} with the module for one release, and to "
        f"{last[one_file(result)]:.4f} "
        f"with that for many: {'the same number' if len(ours) == 1 else 'not the same number'}. "
        f"The losses of all ways and of plain PyTorch end within {apart:.1e}."
    )


def ending() -> str:
    """The stacks that one and the same file ran under."""
    lines = _stacks()
    if not lines:
        return ""
    lines.sort(key=lambda line: (_release(line["torch"]), _release(line["python"]), line["date"]))
    rows = [
        [
            line["torch"],
            line["python"],
            str(line["checks"]),
            f"{line['calls']:,}",
            "borrowed" if line["borrows"] else "torch's own handle",
            f"{line['date']}, {line['commit'][:10]}",
        ]
        for line in lines
    ]
    stacks = {(line["torch"], line["python"]) for line in lines}
    head = ("torch", "CPython", "checks", "calls that leak nothing", "x.cdata", "date, commit")
    return results.paragraphs(
        Table(head, rows, words=(0, 1, 4, 5), title="one and the same file, compiled once, ran here"),
        f"These are {len(stacks)} stacks. Every check passed under each of them.",
    )


def stacks() -> list[str]:
    """The stacks of the file, for the table of all experiments."""
    lines = _stacks()
    if not lines:
        return []
    torch, python = (sorted((line[what] for line in lines), key=_release) for what in ("torch", "python"))
    return [f"the file under torch {torch[0]} to {torch[-1]} and CPython {python[0]} to {python[-1]}"]


def _stacks() -> list[dict]:
    return [json.loads(line) for line in STACKS.read_text().splitlines() if line] if STACKS.exists() else []


def _release(version: str) -> list[int]:
    return [int(part) for part in version.partition("+")[0].split(".") if part.isdigit()]


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`, each over that of the module for one release."""
    figure = plots.figure(4)
    axes = figure.subplots()
    labels = [label.replace(", ", ",\n") for label in LABELS.values()]
    for way in reversed(measured(result)):
        values = [_median(result, what, way) / _median(result, what, ways.ONE) for what in LABELS]
        axes.plot(values, labels, "o", color=COLOURS[way], label=way, markersize=7)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.minorticks_off()
    axes.set_xticks((1, 2, 5, 10, 20, 50), ("1", "2", "5", "10", "20", "50"))
    axes.set_xlabel("time over that of one release, median")
    plots.plain(axes, "The same kernels, compiled in several ways", "x")
    plots.key(axes, 3)
    plots.save(figure, path)
