"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table

from .ways import WAYS

OTHERS = tuple(way for way in WAYS if way != "Cython CUDA")
COLOURS = dict(zip(WAYS, ("#8a8f98", "#b8bcc4", "#2f6db5", "#f3c489", "#c9650a"), strict=True))
MEASURED = ("csrc/include/interop/cuda", "docs/experiments/lltm/cell_fused.pyx")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "Bars: microseconds of a small cell on a GPU, by way; below: bandwidth of a large cell's kernels beside a copy"
LABELS = {"forward": "forward", "backward": "backward", "both": "both", "graph": "both, in a CUDA graph"}


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    ours, python = (result["times"]["both"][way]["device"]["median"] for way in ("Cython CUDA", "Python"))
    return (
        f"Forward and backward take {ours:.0f} µs with the kernels of our own and {python:.0f} µs in Python, on "
        f"{result['gpu']['name']}."
    )


def tables(result: dict) -> list[Table]:
    """Median microseconds of each way on each clock, and how our kernels compare; bandwidths."""
    times = []
    for kind, label in LABELS.items():
        for clock in ("device", "host"):
            median = {way: result["times"][kind][way][clock]["median"] for way in WAYS}
            ours = median["Cython CUDA"]
            ratios = ours / median["Python"], ours / min(median[way] for way in OTHERS)
            times.append(
                [f"{label}, {clock}", *(f"{value:.1f}" for value in median.values()), *(f"{r:.2f}" for r in ratios)]
            )
    speeds = [
        [
            dtype,
            *(f"{found[name]:.0f}" for name in ("copy", "forward", "backward")),
            *(f"{found[name] / found['copy']:.2f}" for name in ("forward", "backward")),
        ]
        for dtype, found in result["bandwidth"].items()
    ]
    head = ("dtype", "copy, GB/s", "forward, GB/s", "backward, GB/s", "forward / copy", "backward / copy")
    return [
        Table(("microseconds, median", *WAYS, "CUDA / Python", "CUDA / best other"), times),
        Table(head, speeds),
    ]


def sentences(result: dict) -> str:
    """How far the kernels are from float64 on the CPU, in a sentence."""
    parts = [f"{difference:.0e} in {dtype}" for dtype, difference in result["agreement"].items()]
    return (
        "Outputs and gradients differ from those of plain PyTorch in float64 on the CPU by at most "
        f"{', '.join(parts)}, relative to the largest value."
    )


def conditions(result: dict) -> str:
    """The machine and the versions."""
    gpu, versions, shapes = result["gpu"], result["versions"], result["settings"]
    return (
        f"{gpu['name']} (capability {gpu['capability']}), {result['machine']['cpu']}; torch {versions['torch']}, CUDA "
        f"{gpu['cuda']}, Cython {versions['Cython']}, Python {versions['Python']}; batch {shapes['batch']}, features "
        f"{shapes['features']}, state {shapes['state']}; bandwidth at batch {shapes['large_batch']}, state "
        f"{shapes['large_state']}; {results.date_and_commit(result)}."
    )


def draw(result: dict, path: Path) -> None:
    """Plot the times and bandwidths of `result` into the file `path`."""
    figure = plots.figure(6.4)
    upper, lower = figure.subplots(2, 1)
    width = 0.86 / len(WAYS)
    for index, way in enumerate(WAYS):
        places = [kind + (index - (len(WAYS) - 1) / 2) * width for kind in range(len(LABELS))]
        medians = [result["times"][kind][way]["device"]["median"] for kind in LABELS]
        bars = upper.bar(places, medians, 0.9 * width, color=COLOURS[way], label=way)
        upper.bar_label(bars, [f"{median:.0f}" for median in medians], padding=3, fontsize=plots.SMALL, rotation=90)
    upper.set_xticks(range(len(LABELS)), [plots.folded(label, 13) for label in LABELS.values()])
    plots.plain(upper, "One call of a small cell, by CUDA events", "y")
    upper.set_ylabel("microseconds")
    plots.key(upper, 3)
    names = ("copy", "forward", "backward")
    for index, name in enumerate(names):
        places = [kind + (index - 1) * 0.28 for kind in range(len(result["bandwidth"]))]
        values = [speeds[name] for speeds in result["bandwidth"].values()]
        lower.bar(places, values, 0.25, color=("#8a8f98", "#c9650a", "#e8a54b")[index], label=name)
    lower.set_xticks(range(len(result["bandwidth"])), result["bandwidth"])
    plots.plain(lower, "Bytes moved by a large cell's kernels", "y")
    lower.set_ylabel("GB/s")
    lower.legend(frameon=False, fontsize=plots.SMALL, loc="upper left", ncols=len(names))
    for axes in (upper, lower):
        axes.tick_params(axis="x", length=0)
        axes.margins(y=0.2)  # room for the numbers, and for the legend
    plots.save(figure, path)
