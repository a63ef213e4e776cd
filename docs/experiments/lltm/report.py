"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from interop.experiments import results

from .ways import WAYS

BASELINES = ("Python", "torch.compile", "C++")
"""What one would write without this toolkit."""

RATIOS = ("Cython / C++", "fused / best of the first three", "fused / products")
HEAD = ("", *WAYS, "products alone", *RATIOS)
LABELS = {"forward": "forward", "backward": "backward", "both": "both"}


def rows(result: dict) -> list[list[str]]:
    """The lines of the table: median microseconds of each way recorded, and how Cython compares."""
    lines = []
    for what, label in LABELS.items():
        median = {way: result["times"][what][way]["median"] for way in (*WAYS, "products")}
        fused, best = median["Cython fused"], min(median[way] for way in BASELINES)
        ratios = median["Cython"] / median["C++"], fused / best, fused / median["products"]
        lines.append([label, *(f"{value:.1f}" for value in median.values()), *(f"{ratio:.2f}" for ratio in ratios)])
    return lines


def conditions(result: dict) -> str:
    """What it was measured with, in a line or two."""
    machine, versions, shapes = result["machine"], result["versions"], result["settings"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores (load {machine['load']} at the start), one thread used; "
        f"torch {versions['torch']}, Cython {versions['Cython']}, Python {versions['Python']}, {versions['compiler']}, "
        f"{' '.join(result['flags'])}; batch {shapes['batch']}, features {shapes['features']}, "
        f"state {shapes['state']}; {results.date_and_commit(result)}."
    )


def agreement(result: dict) -> str:
    """How far the ways are from one another, in a sentence."""
    parts = [
        f"{max(differences.values()):.0e} in {dtype}" for dtype, differences in result["agreement"]["largest"].items()
    ]
    return (
        f"Outputs and gradients differ from Python's by at most {' and '.join(parts)}, relative to the largest value."
    )


def training(result: dict) -> str:
    """How the losses fell, in a sentence or two."""
    run = result["training"]
    window = min(20, len(run["losses"]["Python"]))
    first, last = run["losses"]["Python"][0], {way: sum(run["losses"][way][-window:]) / window for way in WAYS}
    return (
        f"{run['steps']} steps on {run['text']} ({run['characters']} characters): the loss fell from {first:.2f} to "
        f"{', '.join(f'{loss:.3f} ({way})' for way, loss in last.items())} nats per character, "
        f"the mean of the last {window} steps."
    )


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    return "\n\n".join(
        [
            conditions(result),
            results.markdown_table(("microseconds, median", *HEAD[1:]), rows(result)),
            f"![The losses of the models, and the times of their cells](results/{machine}.png)",
            agreement(result),
            training(result),
        ]
    )


def draw(result: dict, path: Path) -> None:
    """Plot the losses and the times of `result` into the file `path`."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    _draw_losses(left, result["training"])
    _draw_times(right, result["times"])
    # No date and no version inside, so that the same result gives the same file.
    figure.savefig(path, dpi=120, metadata={"Software": None})


SMOOTH = 10
COLOURS = dict(zip(WAYS, ("#8a8f98", "#b8bcc4", "#2f6db5", "#f3c489", "#e8a54b", "#c9650a"), strict=True))


def _draw_losses(axes, run: dict) -> None:
    # The curves lie on one another: the first is the widest, so that all can be seen.
    steps = range(1, run["steps"] + 1)
    for index, way in enumerate(WAYS):
        width = 8 * 0.72**index
        axes.plot(steps, _trailing_mean(run["losses"][way]), color=COLOURS[way], label=way, linewidth=width, alpha=0.8)
    # A file may be called a$b$: not a formula.
    axes.set_title(f"The models learn {run['text']}", loc="left", fontsize=11, parse_math=False)
    axes.set_xlabel("step")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(f"loss, nats per character (mean of {SMOOTH} steps)")
    axes.legend(frameon=False)
    _plain(axes, "both")


def _draw_times(axes, times: dict) -> None:
    kinds = ("forward", "backward")
    width = 0.86 / len(WAYS)
    for index, way in enumerate(WAYS):
        places = [kind + (index - (len(WAYS) - 1) / 2) * width for kind in range(len(kinds))]
        medians = [times[kind][way]["median"] for kind in kinds]
        spread = [
            [abs(times[kind][way]["quartiles"][end] - times[kind][way]["median"]) for kind in kinds] for end in (0, 1)
        ]
        bars = axes.bar(
            places, medians, 0.9 * width, color=COLOURS[way], label=way, yerr=spread, ecolor="#444444", capsize=2
        )
        axes.bar_label(bars, [f"{median:.0f}" for median in medians], padding=3, fontsize=7)
    for kind, what in enumerate(kinds):
        axes.hlines(
            times[what]["products"]["median"],
            kind - 0.45,
            kind + 0.45,
            "#222222",
            ":",
            label=None if kind else "matrix products alone",
        )
    axes.set_xticks(range(len(kinds)), kinds)
    axes.tick_params(axis="x", length=0)
    axes.set_title("One call of the cell, median and quartiles", loc="left", fontsize=11)
    axes.set_ylabel("microseconds")
    axes.margins(y=0.12)
    axes.legend(frameon=False, loc="upper left", fontsize=8)
    _plain(axes, "y")


def _trailing_mean(values: list[float]) -> list[float]:
    """Each value with the SMOOTH - 1 before it: batches differ more than the ways do."""
    windows = (values[max(0, end - SMOOTH) : end] for end in range(1, len(values) + 1))
    return [sum(window) / len(window) for window in windows]


def _plain(axes, grid: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
