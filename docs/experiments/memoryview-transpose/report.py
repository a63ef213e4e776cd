"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from interop.experiments import plots, results

from . import measure

HEAD = ("", "nanoseconds", "instructions")
OURS = {"interop.memview.permute", "interop.from_buffer"}


def rows(result: dict) -> list[list[str]]:
    """The lines of the table."""
    lines = []
    for what, how in measure.METHODS:
        count = result["instructions"].get(what, {}).get(how)
        time = result["times"][what][how]["median"]
        lines.append([f"{what}: {how}", f"{time:.0f}", "-" if count is None else f"{count:.0f}"])
    return lines


def ratios(result: dict) -> str:
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


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    lines = results.markdown_table(("one call", *HEAD[1:]), rows(result))
    plot = f"![Nanoseconds of each call](results/{machine}.png)"
    return "\n\n".join([results.conditions(result), lines, plot, ratios(result)])


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    calls = [
        (f"{what}: {how}", result["times"][what][how], "#e08a1e" if how in OURS else "#8a8f98")
        for what, how in measure.METHODS
    ]
    plots.draw_calls(path, "A typed memoryview with other axes", 3.6, calls)
