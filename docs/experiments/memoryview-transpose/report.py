"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from . import measure

OURS = {"interop.memview.permute", "interop.from_buffer"}
MEASURED = ("csrc/bridges", "csrc/include/interop/memview.h", "pxd/interop/memview.pxd")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "Bars: nanoseconds of methods that assign a member with other axes, or return it as an array or a tensor"


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    times = result["times"][measure.ASSIGN]
    ours, numpy = (times[how]["median"] for how in ("interop.memview.permute", "numpy.asarray(v).transpose"))
    return (
        f"`interop.memview.permute` gives a member other axes in {ours:.0f} ns, without the GIL and without a copy; "
        f"`numpy.asarray(v).transpose` takes {numpy:.0f} ns."
    )


def tables(result: dict) -> list[Table]:
    """The table of all calls."""
    return [table_of_calls("one call", result, {(what, how): f"{what}: {how}" for what, how in measure.METHODS})]


def sentences(result: dict) -> str:
    """How the other ways compare, in sentences."""
    parts = []
    for unit, table in results.units(result):
        ways = table[measure.ASSIGN]
        ours = ways["interop.memview.permute"]
        others = ", ".join(f"{ours / ways[how]:.2f} times that of {how}" for how in ways if how not in OURS)
        parts.append(f"A method that assigns with permute takes {others} ({unit}).")
        tensors = table[measure.TENSOR]
        parts.append(
            f"A tensor of the member by from_buffer takes "
            f"{tensors['interop.from_buffer'] / tensors['torch.from_numpy(numpy.asarray)']:.2f} times that of "
            f"torch.from_numpy(numpy.asarray) ({unit})."
        )
    return " ".join(parts)


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    calls = [
        (f"{what}: {how}", result["times"][what][how], "#e08a1e" if how in OURS else "#8a8f98")
        for what, how in measure.METHODS
    ]
    plots.draw_calls(path, "A typed memoryview with other axes", 4.6, calls)
