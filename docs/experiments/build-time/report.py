"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from interop.experiments import results

HEAD = ("", "interop.load", "cpp_extension.load", "ratio")
LABELS = {
    "cold": "the first time",
    "edited": "after an edit, in a new process",
    "edited again": "after an edit, in the same process",
    "unchanged": "unchanged, in a new process",
}
COLOURS = {"interop": "#e08a1e", "cpp_extension": "#2f6db5"}
NAMES = {"interop": "interop.load", "cpp_extension": "torch.utils.cpp_extension.load"}


def rows(result: dict) -> list[list[str]]:
    """The lines of the table."""
    lines = []
    for what, label in LABELS.items():
        ours, theirs = (result["times"][what][way]["median"] for way in COLOURS)
        lines.append([label, _time(ours), _time(theirs), f"{ours / theirs:.2f}"])
    return lines


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.0f} ms"


def ratios(result: dict) -> str:
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
    return " ".join(parts)


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    lines = results.markdown_table(("loading a module", *HEAD[1:]), rows(result))
    plot = f"![Seconds of each load](results/{machine}.png)"
    return "\n\n".join([results.conditions(result), lines, plot, ratios(result)])


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    height = 0.38
    for index, way in enumerate(COLOURS):
        times = [result["times"][what][way] for what in LABELS]
        medians = [time["median"] for time in times]
        spread = [[abs(time["quartiles"][end] - time["median"]) for time in times] for end in (0, 1)]
        bars = axes.barh(
            [line + (index - 0.5) * height for line in range(len(LABELS))],
            medians,
            height,
            color=COLOURS[way],
            label=NAMES[way],
            xerr=spread,
            ecolor="#444444",
            capsize=3,
        )
        axes.bar_label(bars, [_time(value) for value in medians], padding=6, fontsize=9)
    axes.set_yticks(range(len(LABELS)), list(LABELS.values()))
    axes.invert_yaxis()
    axes.set_xlabel("seconds, median and quartiles")
    axes.set_title("From the source to a module that runs", loc="left", fontsize=11)
    axes.margins(x=0.1)
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
