"""Shows a result: as tables, as a plot, and as the text of README.md. All three are made from the JSON alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from experiments.harness import plots, results
from experiments.harness.tables import Table

MEASURED = (
    "csrc/include/interop/instantiate.h",
    "csrc/include/interop/library.h",
    "csrc/include/interop/operator.h",
    "csrc/include/interop/parallel.h",
)
"""The code whose speed or behaviour this is about, beside the experiment's own: a newer one makes a result old."""
TESTS = Path(__file__).with_name("tests.json")
"""How the originals' own tests ended with ours; tools/port_tests.py writes it."""
PLOT = "Dots on a logarithmic scale: for each port, the time of each operation over that of the original in C++"
COLOURS = (plots.OURS, "#8f4a06")


def answer(result: dict) -> str:
    """What it comes to, in a sentence."""
    threads = str(result["settings"]["threads"][0])
    parts, alone = [], []
    for name, figures in result["ports"].items():
        ratios = _ratios(result, name, threads)
        if not ratios:
            same, gradients = (figures["agreement"][what] for what in ("results", "gradients"))
            alone.append(f"{name}, without its original, has {same} results and {gradients} gradients of plain torch.")
            continue
        built = figures["installed"]
        compiling = f"; {_part(built, 'seconds', 'cold')} to compile" if "original" in built else ""
        parts.append(f"{name} {median(ratios):.2f} (at most {max(ratios):.2f}{compiling})")
    plural = "" if threads == "1" else "s"
    begin = f"Of the original's time, a port to Cython takes, by the median of all calls on {threads} thread{plural}: "
    return " ".join([*([f"{begin}{', '.join(parts)}."] if parts else []), *alone]) or "There is no port yet."


def tables(result: dict) -> list[Table]:
    """What building took, the rows that are slower, and for each port and number of threads a table of its times."""
    found = [_summary(result), *_slower(result)]
    for name in result["ports"]:
        found += [_times(result, name, str(threads)) for threads in result["settings"]["threads"]]
    return found


def sentences(result: dict) -> str:
    """What was compared with what, and what was missing."""
    parts = []
    for name, figures in result["ports"].items():
        count, against = figures["agreement"], figures["against"]
        where = "the original" if against == "original" else "plain torch"
        parts.append(
            f"{name}: {count['results']} results and {count['gradients']} gradients are those of {where}."
            + (f" Without the original: {figures['missing']}." if figures["missing"] else "")
        )
    return " ".join(parts)


def ending() -> str:
    """How the originals' own tests ended with ours."""
    if not TESTS.exists():
        return ""
    found = json.loads(TESTS.read_text(encoding="utf-8"))
    keys = ("files", "passed", "failed", "by design", "skipped")
    lines = [
        [f"`{requirement}`", figures["from"] or "-", *(str(figures[key]) for key in keys)]
        for requirement, figures in found["ports"].items()
    ]
    title = f"the originals' own tests with ours, torch {found['versions']['torch']}, {results.date_and_commit(found)}"
    return str(Table(("original", "tests from its", *keys), lines, words=(0, 1), title=title))


def draw(result: dict, path: Path) -> None:
    """Plot the ratios of `result` into the file `path`."""
    names, threads = list(result["ports"]), [str(count) for count in result["settings"]["threads"]]
    figure = plots.figure(1.6 + 0.9 * max(1, len(names)))
    axes = figure.subplots()
    for index, count in enumerate(threads):
        for place, name in enumerate(names):
            ratios = _ratios(result, name, count)
            height = place + (index - (len(threads) - 1) / 2) * 0.35
            axes.scatter(ratios, [height] * len(ratios), s=10, color=COLOURS[index % 2], alpha=0.5)
            if ratios:
                axes.plot([median(ratios)] * 2, [height - 0.14, height + 0.14], color=plots.INK)
        axes.scatter([], [], color=COLOURS[index % 2], label=f"{count} thread{'' if count == '1' else 's'}")
    axes.axvline(1, color=plots.ERRORS, linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("time of ours over that of the original; a line is the median")
    axes.invert_yaxis()
    plots.plain(axes, f"{len(names)} extensions ported to Cython: each operation and size", "x")
    plots.key(axes, len(threads))
    plots.save(figure, path)


def _rows(result: dict, name: str, threads: str) -> Iterator[tuple[str, str, str, str, dict[str, list[float]]]]:
    """Operation, dtype, size, direction and the times of each case."""
    for operation, dtypes in result["measured"][name].items():
        for dtype, sizes in dtypes.items():
            for size, directions in sizes.items():
                for direction, times in directions.items():
                    yield operation, dtype, size, direction, times[threads]


def _ratios(result: dict, name: str, threads: str) -> list[float]:
    times = (row[-1] for row in _rows(result, name, threads))
    return [time["ours"][0] / time["original"][0] for time in times if "original" in time]


def _part(built: dict, *keys: str) -> str:
    """What ours is of the original."""
    ours, original = built["ours"], built["original"]
    for key in keys:
        ours, original = ours[key], original[key]
    return f"{ours / original:.2f}"


def _summary(result: dict) -> Table:
    lines = []
    for name, figures in result["ports"].items():
        ratios = {str(count): _ratios(result, name, str(count)) for count in result["settings"]["threads"]}
        line = [f"`{figures['requirement']}`"]
        for found in ratios.values():
            line.append(f"{median(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "-")
        built = figures["installed"]
        for keys, digits, unit in (
            (("lines",), 0, 1),
            (("seconds", "cold"), 1, 1),
            (("seconds", "edit"), 1, 1),
            (("bytes",), 0, 1024),
            (("compressed",), 0, 1024),
        ):
            line.append(" / ".join(_figure(built.get(way), keys, digits, unit) for way in ("ours", "original")))
        lines.append(line)
    times = [f"time, {count} thread{'' if count == 1 else 's'}" for count in result["settings"]["threads"]]
    head = ("original", *times, "lines", "s, cold", "s, after an edit", "KiB of .so", "KiB compressed")
    return Table(
        head, lines, title="median of ours over the original, with the least and the most; then ours / the original"
    )


def _slower(result: dict) -> list[Table]:
    """A table of every row in which ours takes longer than the original, the worst first, if there is one."""
    threads = str(result["settings"]["threads"][0])
    compared = [
        (time["ours"][0] / time["original"][0], name, *what)
        for name in result["ports"]
        for *what, time in _rows(result, name, threads)
        if "original" in time
    ]
    slower = sorted((row for row in compared if row[0] > 1), reverse=True)
    plural = "" if threads == "1" else "s"
    title = f"{len(slower)} of {len(compared)} rows take longer than the original on {threads} thread{plural}"
    head = ("port", "operation", "dtype", "size", "direction", "ours / original")
    lines = [[*what, f"{ratio:.2f}"] for ratio, *what in slower]
    return [Table(head, lines, words=range(len(head) - 1), title=title)] if lines else []


def _figure(figures: dict | None, keys: tuple[str, ...], digits: int, unit: int) -> str:
    if figures is None:
        return "-"
    for key in keys:
        figures = figures[key]
    return f"{figures / unit:.{digits}f}"


def _times(result: dict, name: str, threads: str) -> Table:
    """A line for each operation and dtype, and a column for each size and direction."""
    cells, columns = {}, {}
    compared = bool(_ratios(result, name, threads))
    for operation, dtype, size, direction, time in _rows(result, name, threads):
        # The sizes of operations may have different names: what they have in common is their place.
        place = list(result["measured"][name][operation][dtype]).index(size) + 1
        column = columns.setdefault((direction, place), f"size {place}, {direction}")
        value = time["ours"][0] / time["original"][0] if compared else time["ours"][0]
        cells.setdefault((operation, dtype), {})[column] = f"{value:.2f}" if compared else f"{value:.3g}"
    head = [columns[key] for key in sorted(columns)]
    lines = [[f"{what}, {dtype}", *(line.get(column, "-") for column in head)] for (what, dtype), line in cells.items()]
    shown = "time of ours over that of the original" if compared else "microseconds of ours, without the original"
    return Table(("operation", *head), lines, title=f"{name}, {shown}, {threads} thread{'' if threads == '1' else 's'}")
