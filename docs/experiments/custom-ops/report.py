"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from interop.experiments import results

from .ways import FUNCTION, FUNCTION_BOTH, OPERATOR, OPERATOR_BOTH, RECORDED

HEAD = ("", "nanoseconds", "instructions")
TITLES = {
    OPERATOR: "operator",
    RECORDED: "operator, x requires a gradient",
    OPERATOR_BOTH: "operator, and its gradient",
    FUNCTION: "function, x requires a gradient",
    FUNCTION_BOTH: "function, and its gradient",
}
LABELS = {
    "Cython": "Cython",
    "C++": "C++",
    "Python": "Python",
    "Cython, not registered": "Cython function that is no operator",
    "built in": "torch.exp",
}
COLOURS = {
    "Cython": "#e08a1e",
    "C++": "#2f6db5",
    "Python": "#3d8f58",
    "Cython, not registered": "#f0c48a",
    "built in": "#8a8f98",
}


def rows(result: dict) -> list[list[str]]:
    """The lines of the table."""
    lines = []
    for what, title in TITLES.items():
        for way, time in _by_way(result["times"][what]):
            count = result["instructions"].get(what, {}).get(way)
            numbers = [f"{time['median']:.0f}", "-" if count is None else f"{count:.0f}"]
            lines.append([f"{title}: {LABELS[way]}", *numbers])
    return lines


def ratios(result: dict) -> str:
    """What the bars are about, in sentences."""
    parts = []
    for unit, table in results.units(result):
        operator, recorded, function = table[OPERATOR], table[RECORDED], table[FUNCTION]
        both, operator_both = table[FUNCTION_BOTH], table[OPERATOR_BOTH]
        that = "that" if unit == "time" else "those"
        parts += [
            f"An operator in Cython costs {_times(operator, 'Python')} the {unit} of one in Python, "
            f"{_times(operator, 'C++')} {that} of one in C++ and "
            f"{_times(operator, 'Cython, not registered')} {that} of a Cython function that is no operator; "
            f"where x requires a gradient {_times(recorded, 'Python')} {that} of Python and "
            f"{_times(recorded, 'C++')} {that} of C++, with the gradient computed "
            f"{_times(operator_both, 'Python')} and {_times(operator_both, 'C++')}.",
            f"A differentiable function in Cython costs {_times(function, 'Python')} the {unit} of one in Python, "
            f"{_times(function, 'C++')} {that} of one in C++ and {_times(function, 'built in')} {that} of torch.exp; "
            f"with the gradient computed {_times(both, 'Python')}, {_times(both, 'C++')} and "
            f"{_times(both, 'built in')}, where torch.exp itself costs "
            f"{both['built in'] / both['Python']:.2f} times {that} of Python.",
        ]
    return " ".join(parts)


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    lines = results.markdown_table(("one call", *HEAD[1:]), rows(result))
    plot = f"![Nanoseconds of each call](results/{machine}.png)"
    return "\n\n".join([results.conditions(result), lines, plot, ratios(result)])


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = Figure(figsize=(8, 7), layout="constrained")
    FigureCanvasAgg(figure)
    counts = [len(result["times"][what]) for what in TITLES]
    plots = figure.subplots(len(TITLES), 1, gridspec_kw={"height_ratios": counts})
    for axes, (what, title) in zip(plots, TITLES.items(), strict=True):
        ways, times = zip(*_by_way(result["times"][what]), strict=True)
        medians = [time["median"] / 1000 for time in times]
        spread = [
            [abs(time["quartiles"][end] / 1000 - m) for time, m in zip(times, medians, strict=True)] for end in (0, 1)
        ]
        colours = [COLOURS[way] for way in ways]
        bars = axes.barh(
            [LABELS[way] for way in ways], medians, color=colours, xerr=spread, ecolor="#444444", capsize=3
        )
        axes.bar_label(bars, [f"{value:.1f}" for value in medians], padding=6, fontsize=9)
        axes.invert_yaxis()
        axes.set_title(title, loc="left", fontsize=10)
        axes.margins(x=0.1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    plots[-1].set_xlabel("microseconds, median and quartiles")
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _by_way(times: dict[str, dict]) -> list[tuple[str, dict]]:
    return [(way, times[way]) for way in LABELS if way in times]


def _times(table: dict[str, float], way: str) -> str:
    return f"{table['Cython'] / table[way]:.2f} times"
