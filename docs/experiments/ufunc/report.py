"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table

from .measure import COMPILED, FUNCTIONS, LARGEST, SIZES, WAYS

COLOURS = dict(zip(WAYS, ("#2f6db5", "#7a4fa3", "#e08a1e", "#c2b280", "#8a8f98"), strict=True))
HEAD = (*SIZES, f"{LARGEST}, into an existing result", f"{LARGEST}, page faults")
MEASURED = ("csrc/include/interop/elementwise.h", "csrc/include/interop/parallel.h")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "Bars on a logarithmic scale: microseconds of x + y by each way, for three sizes; below: of x y + x / (1 + y y)"
BYTES = 12  # of memory for each element: two floats read, one written


def answer(result: dict) -> str:
    """The answer to the question: for an existing result, and for one that each call allocates."""
    add, fused, fresh = (
        {way: f"{time['median'] / 1e3:.1f} ms" for way, time in times.items()}
        for times in (result["into"]["add"], result["into"]["fused"], result["times"]["add"][LARGEST])
    )
    return (
        f"x + y of {LARGEST} elements takes {fresh['elementwise']}, with torch.add {fresh['torch']} and with "
        f"@cython.ufunc {fresh['@cython.ufunc']}; into an existing tensor {add['elementwise']}, {add['torch']} and "
        f"{add['@cython.ufunc']}. {FUNCTIONS['fused']} into an existing tensor takes {fused['elementwise']}, with "
        f"torch's operators {fused['torch']}."
    )


def tables(result: dict) -> list[Table]:
    """A table for each function, and one of clang."""
    found = [Table((f"{text}, microseconds", *HEAD), _rows(result, what)) for what, text in FUNCTIONS.items()]
    if result.get("clang"):
        head = (f"{result['clang']['version']}, times as long as {result['versions']['compiler']}", *SIZES)
        rows = [
            [f"{text}, {way}", *(f"{ratio:.2f}" for ratio in _clang_ratios(result, what, way))]
            for what, text in FUNCTIONS.items()
            for way in COMPILED
        ]
        found.append(Table(head, rows))
    return found


def _clang_ratios(result: dict, what: str, way: str) -> list[float]:
    """The time of what clang made, over that of the default compiler's, for each size."""
    times = result["clang"]["times"][what]
    return [times[size][f"{way}, clang"]["median"] / times[size][f"{way}, default"]["median"] for size in SIZES]


def _rows(result: dict, what: str) -> list[list[str]]:
    lines = []
    for way in WAYS:
        figures = [f"{result['times'][what][size][way]['median']:.1f}" for size in SIZES]
        figures += [f"{result['into'][what][way]['median']:.1f}", str(result["faults"][what][way])]
        lines.append([way, *figures])
    return lines


def bandwidth(microseconds: float) -> float:
    """Gigabytes of memory a second, of the largest size."""
    return BYTES * SIZES[LARGEST] / microseconds / 1e3


def sentences(result: dict) -> str:
    """What the bar is about, in sentences."""
    ours, numpy, torch = (
        bandwidth(result["into"]["add"][way]["median"]) for way in ("elementwise", "@cython.ufunc", "torch")
    )
    parts = [
        f"With {LARGEST} elements and into an existing result, x + y made of a scalar function moves {ours:.1f} "
        f"GB/s, {ours / torch:.2f} times what torch.add moves; @cython.ufunc moves {numpy:.1f} GB/s.",
        _compared(result["into"]["fused"], "Into an existing result"),
    ]
    ours, torch = (result["times"]["add"][LARGEST][way]["median"] for way in ("elementwise", "torch"))
    parts.append(
        f"With a result of {4 * SIZES[LARGEST] / 1e6:.0f} MB that each call allocates, x + y made of a scalar "
        f"function has {torch / ours:.2f} times the bandwidth of torch.add."
    )
    allocating = 1 - result["into"]["add"]["torch"]["median"] / torch
    parts.append(f"There, allocating is {100 * allocating:.0f}% of what torch.add takes.")
    parts.append(_compared(result["times"]["fused"][LARGEST], "With its allocation"))
    return " ".join(parts)


def _compared(times: dict, where: str) -> str:
    ours, *others = (times[way]["median"] for way in ("elementwise", "torch", "torch.compile", "@cython.ufunc"))
    operators, compiled, numpy = (f"{ours / other:.2f}" for other in others)
    return (
        f"{where}, {FUNCTIONS['fused']} takes {operators} times as long as torch's operators, {compiled} times as long "
        f"as torch.compile and {numpy} times as long as @cython.ufunc."
    )


def conditions(result: dict) -> str:
    """The machine and the versions."""
    return results.conditions(result, f", {result['settings']['threads']} threads")


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = plots.figure(5.4)
    for axes, (what, text) in zip(figure.subplots(len(FUNCTIONS), 1), FUNCTIONS.items(), strict=True):
        for place, way in enumerate(WAYS):
            values = [result["times"][what][size][way]["median"] for size in SIZES]
            at = [index + (place - len(WAYS) / 2) * 0.15 for index in range(len(SIZES))]
            axes.bar(at, values, width=0.14, label=way, color=COLOURS[way])
        axes.set_xticks(range(len(SIZES)), SIZES)
        axes.set_yscale("log")
        axes.set_ylabel("microseconds")
        axes.set_xlabel("elements")
        plots.plain(axes, text, "")
    plots.key(axes, 3)
    plots.save(figure, path)
