"""Plots of results, as SVG that a reader's dark mode shows in dark colours.

A plot is as wide as a phone, so its parts are below one another. The first one says the most: the table of all
experiments shows it alone.
"""

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox, blended_transform_factory

__all__ = [
    "ERRORS",
    "GRID",
    "INK",
    "OTHER",
    "OURS",
    "SMALL",
    "THEIRS",
    "WIDTH",
    "bars_of_calls",
    "bars_of_values",
    "draw_calls",
    "figure",
    "first_part",
    "folded",
    "grouped_bars",
    "key",
    "plain",
    "save",
    "spread",
]

WIDTH = 5
"""Inches of every plot: on a screen of 400 pixels, a letter of 9 points is then about 9 pixels high."""

SMALL = 9
"""The size of the smallest letters, in points."""

OURS, THEIRS, OTHER = "#e08a1e", "#2f6db5", "#8a8f98"
"""The colours of this toolkit; of the tool that one would use instead; of torch, NumPy and Python."""

INK, PAPER, GRID, ERRORS = "#1f2328", "#ffffff", "#dddddd", "#444444"

DARK = {
    INK: "#dfe3e8",
    PAPER: "#131416",
    GRID: "#33373d",
    ERRORS: "#b6bcc4",
    "#222222": "#f0f2f5",  # lines over bars
    THEIRS: "#5f9fe6",
    OTHER: "#8f959f",
    "#3d8f58": "#55b377",
    "#7a4fa3": "#a982d4",
    "#8f4a06": "#b55f0c",
    "#4d535b": "#666d76",
    "#a8632b": "#c27a3e",
    # Fields that contain words.
    "#8cc08f": "#34784a",
    "#f2c078": "#87590f",
    "#e07b6a": "#ad4433",
}
"""The colours of dark mode, by those of light mode. A colour that is missing here is visible in both."""

mpl.rcParams.update(
    {
        **dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
        ),
        "figure.facecolor": PAPER,
        "savefig.facecolor": PAPER,
        "axes.facecolor": "none",
        "svg.fonttype": "path",  # a reader may lack the font, and other letters need other room
        "svg.hashsalt": "torch-interop",  # the same names of clip paths, and so bytes, each time
    }
)


def draw_calls(path: Path, title: str, height: float, calls: Sequence[tuple[str, dict, str]]) -> None:
    """Plot nanoseconds of single calls as bars into the file `path`, `height` inches high: see `bars_of_calls`."""
    drawn = figure(height)
    bars_of_calls(drawn.subplots(), title, calls)
    save(drawn, path)


def bars_of_calls(axes: Axes, title: str, calls: Sequence[tuple[str, dict, str]], microseconds: bool = False) -> None:
    """Plot nanoseconds of single calls as bars, or the microseconds that they are.

    Each call has a label, its times (median and quartiles, as of `calls.times`), and a colour.
    """
    labels, times, colours = zip(*calls, strict=True)
    _bars(axes, range(len(labels)), times, colours, microseconds)
    axes.set_yticks(range(len(labels)), [folded(label) for label in labels])
    plain(axes, title, "x")


def grouped_bars(axes: Axes, title: str, groups: Mapping[str, Sequence[tuple[str, dict, str]]]) -> None:
    """Plot nanoseconds of single calls as bars, those of a group below its name: see `bars_of_calls`."""
    names, labels, times, colours = {}, {}, [], []
    place = 0.0
    for name, calls in groups.items():
        names[place] = name
        for label, time, colour in calls:
            place += 1
            labels[place] = label
            times.append(time)
            colours.append(colour)
        place += 1.4
    _bars(axes, list(labels), times, colours)
    axes.set_ylim(max(labels) + 0.7, -0.8)
    ticks = names | labels
    axes.set_yticks(list(ticks), list(ticks.values()))
    for tick in axes.yaxis.get_major_ticks()[: len(names)]:
        tick.label1.set_weight("bold")
        tick.tick1line.set_visible(False)
    plain(axes, title, "x")


def _bars(
    axes: Axes, places: Sequence[float], times: Sequence[dict], colours: Sequence[str], microseconds: bool = False
) -> None:
    unit, digits = (1000, 1) if microseconds else (1, 0)
    medians = [time["median"] / unit for time in times]
    bars = axes.barh(places, medians, color=colours, xerr=spread(times, unit), ecolor=ERRORS, capsize=3)
    axes.bar_label(bars, [f"{value:.{digits}f}" for value in medians], padding=6, fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_xlabel(f"{'microseconds' if microseconds else 'nanoseconds'}, median and quartiles")
    axes.margins(x=0.2, y=0.03)


def bars_of_values(axes: Axes, title: str, values: Sequence[tuple[str, float, str]], digits: int, unit: str) -> None:
    """Plot numbers as bars without a scale; each has a label, its value and a colour."""
    if not values:
        axes.set_axis_off()
        return
    labels, numbers, colours = zip(*values, strict=True)
    places = range(len(labels))
    bars = axes.barh(places, numbers, color=colours)
    axes.bar_label(bars, [f"{number:.{digits}f} {unit}" for number in numbers], padding=5)
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([])
    axes.invert_yaxis()
    axes.margins(x=0.2)
    plain(axes, title, "")
    axes.spines["bottom"].set_visible(False)


def folded(text: str, columns: int = 28) -> str:
    """A label in lines of about the number of `columns`."""
    return textwrap.fill(text, columns, break_long_words=False, break_on_hyphens=False)


def spread(times: Sequence[dict], unit: float = 1) -> list[list[float]]:
    """How far the quartiles of times are from their medians, in a unit of so much: error bars."""
    return [[abs(time["quartiles"][end] - time["median"]) / unit for time in times] for end in (0, 1)]


def figure(height: float) -> Figure:
    """An empty figure of `WIDTH`; its height is in inches."""
    result = Figure(figsize=(WIDTH, height), layout="constrained")
    result.get_layout_engine().set(h_pad=0.08)
    FigureCanvasSVG(result)
    return result


def plain(axes: Axes, title: str, numbers: Literal["x", "y", "both", ""]) -> None:
    """Give axes a title and a grid for the axis that has `numbers`, if any.

    The title gets a capital letter if it begins with a word; "x + y" stays as it is.
    """
    if title[:2].isalpha():
        title = title[0].upper() + title[1:]
    written = axes.set_title(title, loc="left", x=0.01, fontsize=11, weight="bold", parse_math=False)
    # It begins at the figure's edge, not at that of the axes, which stand to the right of their labels.
    written.set_transform(blended_transform_factory(axes.figure.transFigure, written.get_transform()))
    axes.spines[["top", "right"]].set_visible(False)
    if numbers:
        axes.grid(axis=numbers, color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)


def key(axes: Axes, columns: int) -> None:
    """Say at the top of the figure what the colours of `axes` mean, in a number of `columns`.

    Within the axes, the key could hide a bar.
    """
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(
        handles, labels, loc="outside upper left", ncols=columns, frameon=False, fontsize=SMALL, handlelength=1.2
    )


def save(drawn: Figure, path: Path, description: str | None = None, first: bool = True) -> None:
    """Write a figure into the file `path`, the same bytes for the same figure; `description` into its metadata.

    If it has several parts, the function also writes the `first` one with the key, as `first_part` says.
    """
    _write(drawn, path, description)
    first_part(path).unlink(missing_ok=True)
    if first and len(drawn.axes) > 1:
        end = drawn.axes[0].get_tightbbox().y0 / drawn.dpi - 0.04
        for axes in drawn.axes[1:]:
            axes.set_visible(False)
        drawn.set_layout_engine("none")
        _write(drawn, first_part(path), part=Bbox([[0, end], drawn.get_size_inches()]))


def first_part(path: Path) -> Path:
    """The file of the first part of the plot `path`; only a plot with several parts has one."""
    return path.with_suffix(f".first{path.suffix}")


def _write(drawn: Figure, path: Path, description: str | None = None, part: Bbox | None = None) -> None:
    text = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Description": description}
    drawn.savefig(text, format="svg", metadata=metadata, bbox_inches=part)
    # A path in one line, for those who read a change of a plot; matplotlib gives each point its own.
    lines = re.sub(r" *\n(?=[A-Zz])", " ", text.getvalue())
    path.write_text(with_dark_mode(lines), encoding="utf-8")


def with_dark_mode(svg: str) -> str:
    """A plot of matplotlib's with other colours where the reader's are dark.

    A program that does not know such a preference shows what matplotlib drew.
    """
    rules = [
        f'[style*="{what}: {light}"] {{ {what}: {dark} !important }}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
        if f"{what}: {light}" in svg
    ]
    style = "@media (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}\n"
    found = re.search(r"</style>", svg)
    return f"{svg[: found.start()]}{style}{svg[found.start() :]}"
