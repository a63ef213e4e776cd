"""Plots of results."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["draw_calls"]


def draw_calls(path: Path, title: str, height: float, calls: Sequence[tuple[str, dict, str]]) -> None:
    """Plot nanoseconds of single calls as bars into the file `path`, `height` inches high.

    Each call has a label, its times (median and quartiles, as of `calls.times`), and a colour.
    """
    figure = Figure(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    labels, times, colours = zip(*calls, strict=True)
    medians = [time["median"] for time in times]
    spread = [[abs(time["quartiles"][end] - time["median"]) for time in times] for end in (0, 1)]
    bars = axes.barh(labels, medians, color=colours, xerr=spread, ecolor="#444444", capsize=3)
    axes.bar_label(bars, [f"{value:.0f}" for value in medians], padding=6, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("nanoseconds, median and quartiles")
    axes.set_title(title, loc="left", fontsize=11)
    axes.margins(x=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
