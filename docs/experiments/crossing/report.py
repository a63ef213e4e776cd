"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from interop.experiments import plots, results

HEAD = ("", "nanoseconds", "instructions")
LABELS = {
    ("empty", "Cython"): "empty function, Cython",
    ("empty", "pybind11"): "empty function, pybind11",
    ("numel", "Cython"): "numel of a tensor, Cython",
    ("numel", "pybind11"): "numel of a tensor, pybind11",
    ("numel", "method"): "x.numel()",
}
COLOURS = {"Cython": "#e08a1e", "pybind11": "#2f6db5", "method": "#8a8f98"}


def rows(result: dict) -> list[list[str]]:
    """The lines of the table."""
    lines = []
    for (what, how), label in LABELS.items():
        count = result["instructions"].get(what, {}).get(how)
        lines.append([label, f"{result['times'][what][how]['median']:.1f}", "-" if count is None else f"{count:.0f}"])
    return lines


def ratios(result: dict) -> str:
    """What the bars are about, in sentences."""
    parts = []
    for unit, table in results.units(result):
        numel, empty = table["numel"], table["empty"]
        parts.append(
            f"Reading a tensor in Cython costs {numel['Cython'] / empty['Cython']:.2f} times the {unit} of an empty "
            f"function, and {numel['Cython'] / numel['pybind11']:.2f} times that of pybind11."
        )
    seconds = result["compiling"]
    parts.append(
        f"g++ takes {seconds['Cython']:.1f} s for the Cython module and {seconds['pybind11']:.1f} s for the one over "
        f"torch/extension.h, {seconds['Cython'] / seconds['pybind11']:.2f} times as long."
    )
    plain, declared = result["translating"]["nothing"], result["translating"]["torch and ATen"]
    parts.append(
        f"Cython takes {declared:.2f} s for a function over cimport torch and cimport ATen, "
        f"{declared - plain:.2f} s more than for one in plain Python."
    )
    return " ".join(parts)


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    lines = results.markdown_table(("one call", *HEAD[1:]), rows(result))
    plot = f"![Nanoseconds of each call](results/{machine}.png)"
    return "\n\n".join([results.conditions(result), lines, plot, ratios(result)])


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    times = result["times"]
    calls = [(label, times[what][how], COLOURS[how]) for (what, how), label in LABELS.items()]
    plots.draw_calls(path, "One call into compiled code", 2.8, calls)
