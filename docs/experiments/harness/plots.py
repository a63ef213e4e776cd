"""Plots of results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["bars_of_calls", "draw_calls", "figure", "plain", "save", "spread"]


def draw_calls(path: Path, title: str, height: float, calls: Sequence[tuple[str, dict, str]]) -> None:
    """Plot nanoseconds of single calls as bars into the file `path`, `height` inches high: see `bars_of_calls`."""
    drawn = figure(8, height)
    bars_of_calls(drawn.subplots(), title, calls)
    save(drawn, path)


def bars_of_calls(
    axes: Axes, title: str, calls: Sequence[tuple[str, dict, str]], size: int = 11, microseconds: bool = False
) -> None:
    """Plot nanoseconds of single calls as bars, or the microseconds that they are.

    Each call has a label, its times (median and quartiles, as of `calls.times`), and a colour; `size` is the title's.
    """
    labels, times, colours = zip(*calls, strict=True)
    unit, digits = (1000, 1) if microseconds else (1, 0)
    medians = [time["median"] / unit for time in times]
    bars = axes.barh(labels, medians, color=colours, xerr=spread(times, unit), ecolor="#444444", capsize=3)
    axes.bar_label(bars, [f"{value:.{digits}f}" for value in medians], padding=6, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel(f"{'microseconds' if microseconds else 'nanoseconds'}, median and quartiles")
    axes.margins(x=0.1)
    plain(axes, title, "x", size)


def spread(times: Sequence[dict], unit: float = 1) -> list[list[float]]:
    """How far the quartiles of times are from their medians, in a unit of so much: error bars."""
    return [[abs(time["quartiles"][end] - time["median"]) / unit for time in times] for end in (0, 1)]


def figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches."""
    result = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(result)
    return result


def plain(axes: Axes, title: str, numbers: Literal["x", "y", "both", ""], size: int = 11) -> None:
    """Give axes their title, not as a formula, and a grid for the axis that has `numbers`, if any."""
    axes.set_title(title, loc="left", fontsize=size, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    if numbers:
        axes.grid(axis=numbers, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)


def save(drawn: Figure, path: Path) -> None:
    """Write a figure into the file `path`, the same bytes for the same figure."""
    drawn.savefig(path, dpi=120, metadata={"Software": None})
