"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from interop.experiments import results

from .measure import FUNCTIONS, SIZES, WAYS

COLOURS = dict(zip(WAYS, ("#2f6db5", "#7a4fa3", "#e08a1e", "#c2b280", "#8a8f98"), strict=True))
BYTES = 12  # of memory for each element: two floats read, one written


def rows(result: dict, what: str) -> list[list[str]]:
    """The lines of the table for one function."""
    return [[way, *(f"{result['times'][what][size][way]['median']:.1f}" for size in SIZES)] for way in WAYS]


def bandwidth(result: dict, what: str, way: str) -> float:
    """Gigabytes of memory a second, with 10M elements."""
    return BYTES * SIZES["10M"] / result["times"][what]["10M"][way]["median"] / 1e3


def ratios(result: dict) -> str:
    """What the bar is about, in sentences."""
    ours, torch = (bandwidth(result, "add", way) for way in ("at.elementwise", "torch"))
    times = {way: time["median"] for way, time in result["times"]["fused"]["10M"].items()}
    return (
        f"With 10M elements, x + y out of a scalar function moves {ours:.1f} GB/s, {ours / torch:.2f} times what "
        f"torch.add moves. {FUNCTIONS['fused']} takes "
        f"{times['at.elementwise'] / times['torch']:.2f} times as long as torch's operators, "
        f"{times['at.elementwise'] / times['torch.compile']:.2f} times as long as torch.compile and "
        f"{times['at.elementwise'] / times['@cython.ufunc']:.2f} times as long as @cython.ufunc."
    )


def conditions(result: dict) -> str:
    """What it was measured with."""
    machine, versions = result["machine"], result["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores (load {machine['load']} at the start), "
        f"{result['settings']['threads']} threads; torch {versions['torch']}, Cython {versions['Cython']}, "
        f"Python {versions['Python']}, {versions['compiler']}, {' '.join(result['flags'])}; "
        f"{results.date_and_commit(result)}."
    )


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    parts = [conditions(result)]
    for what, text in FUNCTIONS.items():
        parts.append(results.markdown_table((f"{text}, microseconds", *SIZES), rows(result, what)))
    return "\n\n".join([*parts, f"![Microseconds of each way](results/{machine}.png)", ratios(result)])


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (what, text) in zip(figure.subplots(1, len(FUNCTIONS)), FUNCTIONS.items(), strict=True):
        for place, way in enumerate(WAYS):
            values = [result["times"][what][size][way]["median"] for size in SIZES]
            at = [index + (place - len(WAYS) / 2) * 0.15 for index in range(len(SIZES))]
            axes.bar(at, values, width=0.14, label=way, color=COLOURS[way])
        axes.set_xticks(range(len(SIZES)), SIZES)
        axes.set_yscale("log")
        axes.set_ylabel("microseconds")
        axes.set_title(text, loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=120, metadata={"Software": None})
