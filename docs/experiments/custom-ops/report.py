"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from .ways import (
    FUNCTION,
    FUNCTION_BOTH,
    FUNCTION_JVP,
    FUNCTION_VMAP,
    OPERATOR,
    OPERATOR_BOTH,
    OPERATOR_JVP,
    OPERATOR_VMAP,
    RECORDED,
    RULE_IN_PYTHON,
)

TITLES = {
    OPERATOR: "operator",
    RECORDED: "operator, x requires a gradient",
    OPERATOR_BOTH: "operator, and its gradient",
    FUNCTION: "function, x requires a gradient",
    FUNCTION_BOTH: "function, and its gradient",
    OPERATOR_JVP: "operator, x has a tangent",
    FUNCTION_JVP: "function, x has a tangent",
    OPERATOR_VMAP: "operator, under vmap",
    FUNCTION_VMAP: "function, under vmap",
}
LABELS = {
    "Cython": "Cython",
    RULE_IN_PYTHON: "Cython, the rule in Python",
    "C++": "C++",
    "Python": "Python",
    "Cython, not registered": "Cython function that is no operator",
    "built in": "torch.exp",
}
COLOURS = {
    "Cython": "#e08a1e",
    RULE_IN_PYTHON: "#b5651d",
    "C++": "#2f6db5",
    "Python": "#3d8f58",
    "Cython, not registered": "#f0c48a",
    "built in": "#8a8f98",
}
MEASURED = (
    "csrc/apply.cpp",
    "csrc/autograd_kernels.cpp",
    "csrc/include/interop/autograd.h",
    "csrc/include/interop/library.h",
    "csrc/include/interop/operator.h",
    "csrc/node.cpp",
    "csrc/transforms.cpp",
    "csrc/vmap.cpp",
    "interop/_transforms.py",
    "pxd/torch/autograd.pxd",
    "pxd/torch/library.pxd",
)
"""The code whose speed or behaviour this is about, beside the experiment's own: a newer one makes a result old."""
PLOT = (
    "Bars: microseconds of an operator in Cython, C++ and Python; below: of operators and differentiable functions "
    "with gradients, with tangents and under vmap"
)


def answer(result: dict) -> str:
    """What it comes to, in a sentence."""
    times = {way: f"{time['median'] / 1e3:.1f} µs" for way, time in result["times"][OPERATOR].items()}
    return (
        f"A call of a registered operator takes {times['Cython']} in Cython, {times['C++']} in C++ and "
        f"{times['Python']} in Python; the same function of Cython, registered nowhere, takes "
        f"{times['Cython, not registered']}."
    )


def tables(result: dict) -> list[Table]:
    """The table of all calls."""
    labels = {
        (what, way): f"{title}: {label}"
        for what, title in _titles(result).items()
        for way, label in LABELS.items()
        if way in result["times"][what]
    }
    return [table_of_calls("one call", result, labels)]


def _titles(result: dict) -> dict[str, str]:
    """Those of the calls that were measured."""
    return {what: title for what, title in TITLES.items() if what in result["times"]}


def sentences(result: dict) -> str:
    """What the bars are about, in sentences."""
    parts = []
    for unit, table in results.units(result):
        operator, recorded, function = table[OPERATOR], table[RECORDED], table[FUNCTION]
        both, operator_both = table[FUNCTION_BOTH], table[OPERATOR_BOTH]
        that = "that" if unit == "time" else "those"
        parts += [
            f"An operator in Cython costs {_times(operator, 'Python')} the {unit} of one in Python, "
            f"{_times(operator, 'C++')} {that} of one in C++ and "
            f"{_times(operator, 'Cython, not registered')} {that} of a Cython function that is no operator; "
            f"where x requires a gradient {_times(recorded, 'Python')} {that} of Python and "
            f"{_times(recorded, 'C++')} {that} of C++, with the gradient computed "
            f"{_times(operator_both, 'Python')} and {_times(operator_both, 'C++')}.",
            f"A differentiable function in Cython costs {_times(function, 'Python')} the {unit} of one in Python, "
            f"{_times(function, 'C++')} {that} of one in C++ and {_times(function, 'built in')} {that} of torch.exp; "
            f"with the gradient computed {_times(both, 'Python')}, {_times(both, 'C++')} and "
            f"{_times(both, 'built in')}, where torch.exp itself costs "
            f"{both['built in'] / both['Python']:.2f} times {that} of Python.",
        ]
        if FUNCTION_JVP in table:
            parts.append(
                f"With a tangent of x, a function in Cython costs {_times(table[FUNCTION_JVP], 'Python')} the {unit} "
                f"of one in Python; under vmap {_times(table[FUNCTION_VMAP], 'Python')}, and an operator with a rule "
                f"for vmap {_times(table[OPERATOR_VMAP], 'Python')}{_with_rule_in_python(table[OPERATOR_VMAP])}."
            )
    return " ".join(parts)


def _with_rule_in_python(table: dict[str, float]) -> str:
    if RULE_IN_PYTHON not in table:
        return ""
    return f", or {table[RULE_IN_PYTHON] / table['Python']:.2f} times with the rule in Python"


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    titles = _titles(result)
    counts = [len(result["times"][what]) for what in titles]
    figure = plots.figure(0.27 * sum(counts) + 0.8 * len(counts))
    parts = figure.subplots(len(titles), 1, height_ratios=counts)
    for axes, (what, title) in zip(parts, titles.items(), strict=True):
        times = result["times"][what]
        calls = [(label, times[way], COLOURS[way]) for way, label in LABELS.items() if way in times]
        plots.bars_of_calls(axes, title, calls, microseconds=True)
    plots.save(figure, path)


def _times(table: dict[str, float], way: str) -> str:
    return f"{table['Cython'] / table[way]:.2f} times"
