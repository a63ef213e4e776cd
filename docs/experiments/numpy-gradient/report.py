"""Shows a result: as tables, as a plot, and as the text of README.md. All are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table

from . import measure, ways

MEASURED = (
    "csrc/bridges",
    "interop/arrays",
    "csrc/include/interop/autograd.h",
    "csrc/include/interop/bridges.h",
)
"""The code whose speed or behaviour this is about, beside the experiment's own: a newer one makes a result old."""
PLOT = "Lines over the number of equations: microseconds of forward, by way; below: of backward"
COLOURS = dict(zip(ways.WAYS, ("#3d8f58", "#9bc9aa", "#5b7fb5", "#e08a1e", "#a8632b", "#8a8f98"), strict=True))


def answer(result: dict) -> str:
    """What it comes to: how many ways and mistakes are right, and the time of a call."""
    outcomes = [found["outcome"] for found in result["mistakes"].values()]
    right, wrong, refused = (outcomes.count(outcome) for outcome in ("right", "wrong", "RuntimeError"))
    times = result["times"][f"forward, {measure.SIZES[0]}"]
    cython, python = (f"{times[way]['median'] / 1e3:.0f} µs" for way in (ways.CYTHON, ways.PYTHON))
    return (
        f"In each of the {len(result['agreement'])} ways in the plot; forward for {measure.SIZES[0]} equations takes "
        f"{cython} in Cython and {python} in Python. Of {len(outcomes)} ways to write the gradient, common mistakes "
        f"among them, {right} are right, {refused} raise an error and {wrong} are wrong in silence."
    )


def tables(result: dict) -> list[Table]:
    """The tables of mistakes, of times, and of conversions."""
    mistakes = [
        [text, found["outcome"], f"`{found['message']}`" if found["outcome"] == "RuntimeError" else found["message"]]
        for text, found in result["mistakes"].items()
    ]
    calls = []
    for what in dict.fromkeys(what for what, _ in measure.cases()):
        times = result["times"][what]
        cells = [f"{times[way]['median'] / 1000:.1f}" if way in times else "-" for way in ways.WAYS]
        calls.append([f"{what} equations", *cells])
    conversions = [
        [what, *(f"{found[how]['median']:.0f}" for how in ("torch", "interop"))]
        for what, found in result["conversions"].items()
    ]
    return [
        Table(("version", "gradient", "what it says"), mistakes, words=None),
        Table(("microseconds, median", *ways.WAYS), calls),
        Table(("nanoseconds, median", "torch", "interop"), conversions),
    ]


def sentences(result: dict) -> str:
    """How the ways compare at the ends of the range, and how well they agree, in sentences."""
    small, large = measure.SIZES[0], measure.SIZES[-1]
    parts = []
    for what in measure.STATEMENTS:
        for size in (small, large):
            times = result["times"][f"{what}, {size}"]
            ratios = ", ".join(
                f"{times[way]['median'] / times[ways.PYTHON]['median']:.2f} ({way})"
                for way in (ways.PYTHON_INTEROP, ways.WRAPPED, ways.CYTHON, ways.LAPACK)
                if way in times  # the results recorded before with_arrays lack it
            )
            parts.append(f"{what.capitalize()}, {size} equations, against {ways.PYTHON}: {ratios}.")
    largest = {dtype: max(found[dtype] for found in result["agreement"].values()) for dtype in ("float64", "float32")}
    differences = " and ".join(f"{value:.0e} in {dtype}" for dtype, value in largest.items())
    parts.append(
        f"Results and gradients differ from those of torch.linalg.solve by at most {differences}, relative to the "
        "largest value; all pass gradcheck and gradgradcheck."
    )
    return " ".join(parts)


def section(result: dict) -> str:
    """The part of README.md about one result."""
    mistakes, calls, conversions = tables(result)
    return results.paragraphs(
        results.conditions(result)[:-1] + f"; SciPy {result['scipy']}, NumPy {result['numpy']}.",
        mistakes,
        calls,
        conversions,
        sentences(result),
    )


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = plots.figure(6.4)
    for axes, what in zip(figure.subplots(len(measure.STATEMENTS), 1), measure.STATEMENTS, strict=True):
        for way in ways.WAYS:
            sizes = [size for size in measure.SIZES if way in result["times"][f"{what}, {size}"]]
            medians = [result["times"][f"{what}, {size}"][way]["median"] / 1000 for size in sizes]
            if not sizes:  # the result is from before this way
                continue
            axes.loglog(sizes, medians, "o-", markersize=4, color=COLOURS[way], label=way)
        axes.set_xlabel("equations")
        axes.set_ylabel("microseconds, median")
        plots.plain(axes, what, "both")
    plots.key(axes, 3)
    plots.save(figure, path)
