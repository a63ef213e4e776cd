"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from . import measure

COLOURS = {"torch": plots.OTHER, "torch, method": plots.OTHER, "of an array": plots.OTHER}
"""Of what is not ours."""
COLUMNS = {"One conversion": lambda what: "DLPack" not in what and "capsule" not in what}
COLUMNS["One conversion by DLPack"] = lambda what: not COLUMNS["One conversion"](what)
"""The halves of the plot, which have scales of their own: what each is called, and which conversions are in it."""
MEASURED = ("csrc/bridges", "csrc/include/interop/bridges", "interop/_bridges.pyx")
"""The code whose speed or behaviour this is about, beside the experiment's own: a newer one makes a result old."""
PLOT = "Bars, grouped by conversion: nanoseconds with interop and with torch"


def measured(result: dict) -> list[tuple[str, str]]:
    """The calls that a result has; one that was recorded earlier may lack some."""
    return [(what, how) for what, how in measure.cases() if how in result["times"].get(what, {})]


def answer(result: dict) -> str:
    """What it comes to, in a sentence."""

    def found(what: str, how: str) -> str:
        return f"{result['times'][f'{what}, 1-d'][how]['median']:.0f} ns"

    arrays, tensors = "tensor from array", "array from tensor"
    return (
        f"`interop.from_numpy` takes {found(arrays, 'interop')} where `torch.from_numpy` takes {found(arrays, 'torch')}"
        f", and `interop.to_numpy` {found(tensors, 'interop')} where `Tensor.numpy` takes {found(tensors, 'torch')}."
    )


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
    """Plot the times of `result`, of one dimension, into the file `path`."""
    figure = plots.figure(10, 4.4)
    for axes, (title, belongs) in zip(figure.subplots(1, len(COLUMNS)), COLUMNS.items(), strict=True):
        groups = {}
        for what, how in measured(result):
            name = what.removesuffix(", 1-d")
            if name != what and belongs(what):
                call = (how, result["times"][what][how], COLOURS.get(how, plots.OURS))
                groups.setdefault(name, []).append(call)
        plots.grouped_bars(axes, title, groups)
    plots.save(figure, path)
