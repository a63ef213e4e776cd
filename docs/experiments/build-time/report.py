"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots
from experiments.harness.tables import Table

LABELS = {
    "cold": "the first time",
    "edited": "after an edit, in a new process",
    "edited again": "after an edit, in the same process",
    "unchanged": "unchanged, in a new process",
}
COLOURS = {"interop": "#e08a1e", "cpp_extension": "#2f6db5"}
NAMES = {"interop": "interop.load", "cpp_extension": "torch.utils.cpp_extension.load"}
MEASURED = ("interop/build", "interop/cython", "interop/jit", "csrc/include/interop/precompiled.h")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "Bars: seconds from the source to a module that runs, with interop.load and with cpp_extension"


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    edited, cold = result["times"]["edited"], result["times"]["cold"]
    ours, theirs = NAMES
    return (
        f"After an edit, a module runs {_time(edited[ours]['median'])} later with `{NAMES[ours]}` and "
        f"{_time(edited[theirs]['median'])} later with `{NAMES[theirs]}`; the first time on a machine, "
        f"{_time(cold[ours]['median'])} and {_time(cold[theirs]['median'])} later."
    )


def tables(result: dict) -> list[Table]:
    """The table of times."""
    lines = []
    for what, label in _labels(result).items():
        ours, theirs = (result["times"][what][way]["median"] for way in COLOURS)
        lines.append([label, _time(ours), _time(theirs), f"{ours / theirs:.2f}"])
    return [Table(("loading a module", "interop.load", "cpp_extension.load", "ratio"), lines)]


def _labels(result: dict) -> dict[str, str]:
    """The situations that were measured."""
    return {what: label for what, label in LABELS.items() if what in result["times"]}


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.0f} ms"


def sentences(result: dict) -> str:
    """What is said of memory and disk, in sentences."""
    parts = []
    for what, label in (("cold", "The first time"), ("edited", "After an edit")):
        ours, theirs = (result["memory"][what][way] for way in COLOURS)
        parts.append(
            f"{label}, the processes take up to {ours} MiB, against {theirs} MiB with cpp_extension, "
            f"{ours / theirs:.2f} times as much."
        )
    disk = result["disk"]
    parts.append(
        f"The precompiled header takes {disk['header']:.0f} MiB of disk, once for each set of flags, and a module "
        f"{disk['module']:.1f} MiB with the C++ that it was made from."
    )
    if "translating" in result:
        none, ours, fused = (result["translating"][way]["median"] for way in ("none", "any_t", "fused"))
        parts.append(
            f"Cython translates a module with a function for 9 dtypes and 7 reductions in {_time(ours)} with `any_t` "
            f"and `constant_t`, and in {_time(fused)} with fused types; its imports alone take {_time(none)}."
        )
    return " ".join(parts)


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = plots.figure(3.6)
    axes = figure.subplots()
    labels, height = _labels(result), 0.38
    for index, way in enumerate(COLOURS):
        times = [result["times"][what][way] for what in labels]
        medians = [time["median"] for time in times]
        bars = axes.barh(
            [line + (index - 0.5) * height for line in range(len(labels))],
            medians,
            height,
            color=COLOURS[way],
            label=NAMES[way],
            xerr=plots.spread(times),
            ecolor=plots.ERRORS,
            capsize=3,
        )
        axes.bar_label(bars, [_time(value) for value in medians], padding=6, fontsize=plots.SMALL)
    axes.set_yticks(range(len(labels)), [plots.folded(label, 18) for label in labels.values()])
    axes.invert_yaxis()
    axes.set_xlabel("seconds, median and quartiles")
    axes.margins(x=0.22)
    plots.plain(axes, "From the source to a module that runs", "x")
    plots.key(axes, 2)
    plots.save(figure, path)
