"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from . import measure

COLOURS = {"torch": plots.OTHER, "torch, method": plots.OTHER, "of an array": plots.OTHER}
"""Of what is not ours."""
NAMES = {
    "cheapest": "the cheapest",
    "cheapest, unowned": "the cheapest, of memory without an owner",
    "METH_FASTCALL": "interop, by a METH_FASTCALL wrapper",
}
PARTS = {"One conversion": lambda what: "DLPack" not in what and "capsule" not in what}
PARTS["One conversion by DLPack"] = lambda what: not PARTS["One conversion"](what)
"""The halves of the plot, which have scales of their own: what each is called, and which conversions are in it."""
MEASURED = ("csrc/bridges", "csrc/include/interop/bridges", "interop/_bridges.pyx", "interop/arrays")
"""The code whose speed or behaviour this is about, beside the experiment's own: a newer one makes a result old."""
PLOT = "Bars, grouped by conversion: nanoseconds with interop and with torch"


def measured(result: dict) -> list[tuple[str, str]]:
    """The calls that a result has; one that was recorded earlier may lack some."""
    timed = [*measure.STATEMENTS, measure.THREAD, measure.OFF]
    known = [*measure.cases(), *((f"{what}, 1-d", how) for what, how in timed)]
    return [(what, how) for what, how in known if how in result["times"].get(what, {})]


def answer(result: dict) -> str:
    """What it comes to, in a sentence."""

    def found(what: str, how: str) -> str:
        return f"{result['times'][f'{what}, 1-d'][how]['median']:.0f} ns"

    arrays, tensors = "tensor from array", "array from tensor"
    return (
        f"`interop.from_numpy` takes {found(arrays, 'interop')} where `torch.from_numpy` takes {found(arrays, 'torch')}"
        f", and `interop.to_numpy` {found(tensors, 'interop')} where `Tensor.numpy` takes {found(tensors, 'torch')}."
    )


def labels(result: dict) -> dict[tuple[str, str], str]:
    """The rows of the table; what is measured with one tensor alone has no number of dimensions."""
    found = {}
    for what, how in measured(result):
        name = what if what.rpartition(",")[0] in measure.EVERY_RANK else what.removesuffix(", 1-d")
        found[what, how] = f"{name}: {NAMES.get(how, how)}"
    return found


def tables(result: dict) -> list[Table]:
    """The table of all calls."""
    return [table_of_calls("one conversion", result, labels(result))]


def compared(result: dict, what: str, ours: str, theirs: str) -> str:
    """The range of the ratios for 1 to 4 dimensions, in words; empty if the result lacks them."""
    found = []
    for unit, table in results.units(result):
        rows = [table.get(f"{what}, {n}-d", {}) for n in measure.ranks(what, ours)]
        each = sorted({f"{row[ours] / row[theirs]:.2f}" for row in rows if row.keys() >= {ours, theirs}})
        if each:
            found.append(f"{' to '.join([each[0], *each[1:][-1:]])} times the {unit}")
    whose = theirs if theirs.startswith(("of ", "by ")) else f"of {theirs}"
    return f"{what[0].upper()}{what[1:]}, {ours}: {', '.join(found)} {whose}" if found else ""


def sentences(result: dict) -> str:
    """Each bar, what explains it, and what was found, in sentences."""
    parts = []
    for what, (ours, theirs, bar) in measure.BARS.items():
        if words := compared(result, what, ours, theirs):
            parts.append(f"{words} (to reach: {bar} times the time).")
    for what, ours, theirs in measure.COMPARED:
        if words := compared(result, what, ours, theirs):
            parts.append(f"{words}.")
    for (what, how), limit in measure.LIMITS.items():
        if time := result["times"].get(f"{what}, 1-d", {}).get(how):
            parts.append(f"{what[0].upper() + what[1:]}, {how}: {time['median']:.0f} ns (to reach: {limit} ns).")
    return " ".join([*parts, *distances(result)])


def distances(result: dict) -> list[str]:
    """How far each function is from the cheapest one that makes the same, in sentences."""
    found = []
    for unit, table in results.units(result):
        parts = []
        for name, (ours, theirs) in measure.CHEAPEST.items():
            mine, least = (table.get(f"{what}, 1-d", {}).get(how) for what, how in (ours, theirs))
            if mine and least:
                parts.append(f"`{name}` {mine / least:.2f}")
        if parts:
            found.append(f"The {unit} of the cheapest one, in one dimension, times: {', '.join(parts)}.")
    return found


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result`, of one dimension, into the file `path`."""
    figure = plots.figure(9)
    for axes, (title, belongs) in zip(figure.subplots(len(PARTS), 1), PARTS.items(), strict=True):
        groups = {}
        for what, how in measured(result):
            name = what.removesuffix(", 1-d")
            if name != what and belongs(what) and name in measure.EVERY_RANK and how not in measure.EXPLAINING:
                call = (how, result["times"][what][how], COLOURS.get(how, plots.OURS))
                groups.setdefault(name, []).append(call)
        plots.grouped_bars(axes, title, groups)
    plots.save(figure, path)
