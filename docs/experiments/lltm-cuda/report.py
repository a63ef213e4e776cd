"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from interop.experiments import results

from .ways import WAYS

OTHERS = tuple(way for way in WAYS if way != "Cython CUDA")
HEAD = ("", *WAYS, "CUDA / Python", "CUDA / best other")
BANDWIDTH_HEAD = ("dtype", "copy, GB/s", "forward, GB/s", "backward, GB/s", "forward / copy", "backward / copy")
LABELS = {"forward": "forward", "backward": "backward", "both": "both", "graph": "both, in a CUDA graph"}


def rows(result: dict) -> list[list[str]]:
    """The lines of the table: median microseconds of each way on each clock, and how our kernels compare."""
    lines = []
    for kind, label in LABELS.items():
        for clock in ("device", "host"):
            median = {way: result["times"][kind][way][clock]["median"] for way in WAYS}
            ours = median["Cython CUDA"]
            ratios = ours / median["Python"], ours / min(median[way] for way in OTHERS)
            lines.append(
                [f"{label}, {clock}", *(f"{value:.1f}" for value in median.values()), *(f"{r:.2f}" for r in ratios)]
            )
    return lines


def bandwidth_rows(result: dict) -> list[list[str]]:
    """The lines of the table of bandwidths."""
    return [
        [
            dtype,
            *(f"{speeds[name]:.0f}" for name in ("copy", "forward", "backward")),
            *(f"{speeds[name] / speeds['copy']:.2f}" for name in ("forward", "backward")),
        ]
        for dtype, speeds in result["bandwidth"].items()
    ]


def agreement(result: dict) -> str:
    """How far the kernels are from float64 on the CPU, in a sentence."""
    parts = [f"{difference:.0e} in {dtype}" for dtype, difference in result["agreement"].items()]
    return (
        "Outputs and gradients differ from those of plain PyTorch in float64 on the CPU by at most "
        f"{', '.join(parts)}, relative to the largest value."
    )


def conditions(result: dict) -> str:
    """What it was measured with."""
    gpu, versions, shapes = result["gpu"], result["versions"], result["settings"]
    return (
        f"{gpu['name']} (capability {gpu['capability']}), {result['machine']['cpu']}; torch {versions['torch']}, CUDA "
        f"{gpu['cuda']}, Cython {versions['Cython']}, Python {versions['Python']}; batch {shapes['batch']}, features "
        f"{shapes['features']}, state {shapes['state']}; bandwidth at batch {shapes['large_batch']}, state "
        f"{shapes['large_state']}; {results.date_and_commit(result)}."
    )


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    return "\n\n".join(
        [
            conditions(result),
            results.markdown_table(("microseconds, median", *HEAD[1:]), rows(result)),
            results.markdown_table(BANDWIDTH_HEAD, bandwidth_rows(result)),
            f"![Times of the cell on a GPU](results/{machine}.png)",
            agreement(result),
        ]
    )


COLOURS = dict(zip(WAYS, ("#8a8f98", "#b8bcc4", "#2f6db5", "#f3c489", "#c9650a"), strict=True))


def draw(result: dict, path: Path) -> None:
    """Plot the times and bandwidths of `result` into the file `path`."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[1.6, 1])
    width = 0.86 / len(WAYS)
    for index, way in enumerate(WAYS):
        places = [kind + (index - (len(WAYS) - 1) / 2) * width for kind in range(len(LABELS))]
        medians = [result["times"][kind][way]["device"]["median"] for kind in LABELS]
        bars = left.bar(places, medians, 0.9 * width, color=COLOURS[way], label=way)
        left.bar_label(bars, [f"{median:.0f}" for median in medians], padding=3, fontsize=7)
    left.set_xticks(range(len(LABELS)), LABELS.values())
    left.set_title("One call of a small cell, by CUDA events", loc="left", fontsize=11)
    left.set_ylabel("microseconds")
    left.legend(frameon=False, fontsize=8)
    names = ("copy", "forward", "backward")
    for index, name in enumerate(names):
        places = [kind + (index - 1) * 0.28 for kind in range(len(result["bandwidth"]))]
        values = [speeds[name] for speeds in result["bandwidth"].values()]
        right.bar(places, values, 0.25, color=("#8a8f98", "#c9650a", "#e8a54b")[index], label=name)
    right.set_xticks(range(len(result["bandwidth"])), result["bandwidth"])
    right.set_title("Bytes moved by a large cell's kernels", loc="left", fontsize=11)
    right.set_ylabel("GB/s")
    right.legend(frameon=False, fontsize=8, loc="lower right")
    for axes in (left, right):
        axes.tick_params(axis="x", length=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.margins(y=0.12)
    figure.savefig(path, dpi=120, metadata={"Software": None})
