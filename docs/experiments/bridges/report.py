"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from . import measure

COLOURS = {"torch": "#8a8f98", "of an array": "#8a8f98"}
PLOT = "Nanoseconds of each conversion"


def measured(result: dict) -> list[tuple[str, str]]:
    """The calls that a result has; one that was recorded earlier may lack some."""
    return [(what, how) for what, how in measure.cases() if how in result["times"].get(what, {})]


def tables(result: dict) -> list[Table]:
    """The table of all calls."""
    return [table_of_calls("one conversion", result, {(what, how): f"{what}: {how}" for what, how in measured(result)})]


def sentences(result: dict) -> str:
    """Each bar, and the range of what was found for 1 to 4 dimensions, in sentences."""
    parts = []
    for what, (ours, theirs, bar) in measure.BARS.items():
        if f"{what}, 1-d" not in result["times"]:
            continue
        found = []
        for unit, table in results.units(result):
            each = [table[f"{what}, {n}-d"][ours] / table[f"{what}, {n}-d"][theirs] for n in measure.SHAPES]
            found.append(f"{min(each):.2f} to {max(each):.2f} times the {unit}")
        whose = theirs if theirs.startswith("of ") else f"of {theirs}"
        words = what[0].upper() + what[1:]
        parts.append(f"{words}, {ours}: {', '.join(found)} {whose} (to reach: {bar} times the time).")
    return " ".join(parts)


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result`, of 2 dimensions, into the file `path`."""
    calls = [
        (f"{what.removesuffix(', 2-d')}: {how}", result["times"][what][how], COLOURS.get(how, "#e08a1e"))
        for what, how in measured(result)
        if what.endswith("2-d")
    ]
    plots.draw_calls(path, "One conversion of two dimensions", 4, calls)
