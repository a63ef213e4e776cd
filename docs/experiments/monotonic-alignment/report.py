"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots
from experiments.harness.tables import Table

ROUTE, OURS = "NumPy route", "Cython"
COLOURS = {
    "NumPy route": "#2f6db5",
    "its core alone": "#9dbbdd",
    "Cython": "#e08a1e",
    "Cython, called as an op": "#f2c48a",
    "PyTorch": "#8a8f98",
}
MEASURED = ("csrc/include/interop/operator.h", "csrc/include/interop/parallel.h")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = (
    "Bars on a logarithmic scale: milliseconds of the search by each way, for several sizes, on one thread; below: "
    "on two"
)


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    first, threads = next(iter(result["times"])), str(result["settings"]["threads"][0])
    times = {way: f"{time['median']:.1f} ms" for way, time in result["times"][first][threads].items()}
    return (
        f"The search takes {times[OURS]} in Cython on tensors, {times[ROUTE]} by the NumPy route and "
        f"{times['PyTorch']} in PyTorch ({first}, {threads} thread{'' if threads == '1' else 's'}); all find "
        "the same paths."
    )


def tables(result: dict) -> list[Table]:
    """A table for each number of threads."""
    found = []
    for threads in map(str, result["settings"]["threads"]):
        ways = list(next(iter(result["times"].values()))[threads])
        lines = []
        for case, by_threads in result["times"].items():
            median = {way: time["median"] for way, time in by_threads[threads].items()}
            lines.append([case, *(f"{value:.3g}" for value in median.values()), f"{median[ROUTE] / median[OURS]:.1f}"])
        title = f"milliseconds, median, {threads} thread{'' if threads == '1' else 's'}"
        found.append(Table((title, *ways, "route / Cython"), lines))
    return found


def sentences(result: dict) -> str:
    """What the figures come to."""
    first = next(iter(result["times"]))
    parts = [f"All ways find the same path for each of {result['items']} items."]
    for threads in map(str, result["settings"]["threads"]):
        median = {way: time["median"] for way, time in result["times"][first][threads].items()}
        others = [
            f"{median[way] / median[OURS]:.1f} times as fast as {name}"
            for way, name in ((ROUTE, "the NumPy route"), ("its core alone", "its core"), ("PyTorch", "PyTorch"))
        ]
        parts.append(
            f"For {first} on {threads} thread{'' if threads == '1' else 's'}, Cython on tensors is {', '.join(others)}."
        )
    libraries = result["openmp"]
    parts.append(f"OpenMP in the process: {', '.join(libraries)}.")
    return " ".join(parts)


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    threads = [str(count) for count in result["settings"]["threads"]]
    figure = plots.figure(10)
    for axes, count in zip(figure.subplots(len(threads), 1, squeeze=False)[:, 0], threads, strict=True):
        ways = list(next(iter(result["times"].values()))[count])
        height = 0.8 / len(ways)
        for index, way in enumerate(ways):
            times = [by_threads[count][way] for by_threads in result["times"].values()]
            medians = [time["median"] for time in times]
            spread = plots.spread(times)
            places = [case + (index - (len(ways) - 1) / 2) * height for case in range(len(times))]
            bars = axes.barh(
                places, medians, height * 0.9, color=COLOURS[way], label=way, xerr=spread, ecolor=plots.ERRORS
            )
            axes.bar_label(bars, [f"{median:.2g}" for median in medians], padding=4, fontsize=plots.SMALL)
        axes.set_xscale("log")
        axes.set_yticks(range(len(result["times"])), [plots.folded(case, 15) for case in result["times"]])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("milliseconds, median and quartiles")
        axes.margins(x=0.15, y=0.02)
        axes.invert_yaxis()
        plots.plain(axes, f"The search on {count} thread{'' if count == '1' else 's'}", "x")
    plots.key(axes, 3)
    plots.save(figure, path)
