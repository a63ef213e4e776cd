"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from . import ways

LABELS = {
    ("empty", "Cython"): "empty function, Cython",
    ("empty", "pybind11"): "empty function, pybind11",
    ("numel", "Cython"): "numel of a tensor, Cython",
    ("numel", "pybind11"): "numel of a tensor, pybind11",
    ("numel", "method"): "x.numel()",
}
COLOURS = {"Cython": plots.OURS, "pybind11": plots.THEIRS, "method": plots.OTHER}
SHADES = {"1 tensor": "#c3c7cd", "3 tensors": plots.OTHER, "8 tensors": "#4d535b"}
"""The dots of other tools, which are also those of the legend."""
OUR_SHADES = {"1 tensor": "#f3c489", "3 tensors": plots.OURS, "8 tensors": "#8f4a06"}
OUR_WAYS = ("Cython", "DLPack exchange, checked")

BARS = ("pybind11", "tvm-ffi", "torch.ops")
"""What Cython is compared with in sentences."""
COMPILED = (
    ("Cython", "pybind11", "pybind11, fewest headers", "nanobind", "tvm-ffi", "torch.ops"),
    ("Cython, at.add", "pybind11, at::add"),
)
"""Our module, and those of other tools that do the same."""
TOOLS = {"Cython": "Cython", "pybind11": "pybind11", "nanobind": "nanobind", "tvm-ffi": "tvm-ffi"}
TOOLS |= {"torch.ops": "torch.ops"}
"""The tools in the answer, by the names of the ways."""
UNITS = {"time": "nanoseconds", "instructions": "instructions"}
MEASURED = (
    "csrc/include/interop/tensor.h",
    "csrc/include/interop/unwrap_reference.h",
    "csrc/include/interop/dlpack.h",
    "pxd/torch/__init__.pxd",
)
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = (
    "Dots: nanoseconds of calls with one, three and eight tensors by each tool, ours in orange; below, bars: calls "
    "into Cython and pybind11 that hardly do anything"
)


def measured(result: dict) -> list[str]:
    """The ways that a result has with tensors; where a tool was not installed, it lacks one."""
    return [way for way in ways.WAYS if way in result["times"]["1 tensor"]]


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    found = {tool: result["times"]["1 tensor"].get(way, {}).get("median") for way, tool in TOOLS.items()}
    others = sorted((time, tool) for tool, time in found.items() if time is not None and tool != "Cython")
    *told, last = [f"{found['Cython']:.0f} ns in Cython", *(f"{time:.0f} ns with {tool}" for time, tool in others)]
    return f"A call with one tensor takes {', '.join(told)} and {last}."


def tables(result: dict) -> list[Table]:
    """The tables: of the calls that hardly do anything, and of those with tensors."""
    found = [table_of_calls("one call", result, LABELS, digits=1)]
    for unit, figures in results.units(result):
        lines = [[way, *(f"{figures[what][way]:.0f}" for what in ways.COUNTS)] for way in measured(result)]
        found.append(Table((f"{UNITS[unit]} of a call", *ways.COUNTS), lines))
    return found


def sentences(result: dict) -> str:
    """What the bars are about, in sentences."""
    parts = []
    for unit, table in results.units(result):
        numel, empty = table["numel"], table["empty"]
        parts.append(
            f"Reading a tensor in Cython costs {numel['Cython'] / empty['Cython']:.2f} times the {unit} of an empty "
            f"function, and {numel['Cython'] / numel['pybind11']:.2f} times that of pybind11."
        )
        for what in ways.COUNTS:
            ours = table[what]["Cython"]
            found = [f"{way} {ours / table[what][way]:.2f}" for way in BARS if way in table[what]]
            parts.append(f"With {what}, {unit} of Cython over that of others: {', '.join(found)}.")
    seconds = result["compiling"]
    for ours, *theirs in COMPILED:
        found = [f"{seconds[how]:.1f} s for {how}" for how in theirs if how in seconds]
        if found:
            parts.append(f"g++ takes {seconds[ours]:.1f} s for {ours}; {', '.join(found)}.")
    plain, declared = result["translating"]["nothing"], result["translating"]["torch and ATen"]
    parts.append(
        f"Cython takes {declared:.2f} s for a function over cimport torch and cimport ATen, "
        f"{declared - plain:.2f} s more than for one in plain Python."
    )
    return " ".join(parts)


def conditions(result: dict) -> str:
    """The machine and the versions."""
    tools = ", ".join(f"{tool} {version}" for tool, version in result["tools"].items())
    return f"{results.conditions(result)} Beside them: {tools}."


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    times = result["times"]
    figure = plots.figure(6.2)
    upper, lower = figure.subplots(2, 1, height_ratios=[1.8, 1])
    labels = measured(result)
    for what, shade in SHADES.items():
        colours = [OUR_SHADES[what] if way in OUR_WAYS else shade for way in labels]
        upper.scatter([times[what][way]["median"] for way in labels], labels, s=49, color=colours)
        upper.scatter([], [], s=49, color=shade, label=what)
    upper.scatter([], [], s=49, color=plots.OURS, label="torch-interop")
    upper.set_xscale("log")
    upper.invert_yaxis()
    upper.xaxis.set_major_formatter("{x:.0f}")
    upper.set_xlabel("nanoseconds, median; a logarithmic scale")
    plots.plain(upper, "One call with tensors, of which it reads the sizes", "x")
    plots.key(upper, 4)
    calls = [(label, times[what][how], COLOURS[how]) for (what, how), label in LABELS.items()]
    plots.bars_of_calls(lower, "One call into compiled code", calls)
    plots.save(figure, path)
