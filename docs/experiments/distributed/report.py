"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from interop.experiments import results

from .worker import PLAIN, WAYS

HEAD = ("", *WAYS)
PROCESSES = ("one process", "two processes")
COLOURS = {"one process": "#8a8f98", "two processes": "#e08a1e"}


def rows(result: dict) -> list[list[str]]:
    """The lines of the table: differences and buckets by mode, then times."""
    lines = []
    for mode, ways in result["agreement"].items():
        for what in ("gradients", "parameters"):
            lines.append([f"{mode}: {what} differ by", *(f"{ways[way][what]:.0e}" for way in WAYS)])
        lines.append([f"{mode}: buckets reduced", *(str(ways[way]["buckets"]) for way in WAYS)])
    for processes in PROCESSES:
        times = result["times"][processes]
        lines.append([f"milliseconds of a step, {processes}", *(f"{times[way]['median']:.1f}" for way in WAYS)])
    return lines


def summary(result: dict) -> str:
    """What was compared, and how the loss went, in sentences."""
    losses = result["losses"]["two processes"]
    ends = ", ".join(f"{losses[way][-1]:.3f} ({way})" for way in WAYS)
    return (
        "Differences are relative to the largest value, in float64: of gradients after the first step, of parameters "
        f"after {result['settings']['steps']}. The two processes have the same to the bit. The loss went from "
        f"{losses[WAYS[0]][0]:.3f} to {ends} nats per character."
    )


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    lines = results.markdown_table(HEAD, rows(result))
    plot = f"![The losses, and the time of a step](results/{machine}.png)"
    return "\n\n".join([results.conditions(result), lines, plot, summary(result)])


def draw(result: dict, path: Path) -> None:
    """Plot the losses and the times of `result` into the file `path`."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for processes in PROCESSES:
        values = result["losses"][processes]["Cython op"]
        style = {"linewidth": 4, "alpha": 0.5} if processes == PROCESSES[0] else {"linewidth": 1.2}
        left.plot(range(1, len(values) + 1), values, color=COLOURS[processes], label=processes, **style)
    left.set_title(f"loss of Cython op, {PLAIN}", loc="left", fontsize=11)
    left.set_xlabel("step")
    left.set_ylabel("nats per character")
    for index, processes in enumerate(PROCESSES):
        times = [result["times"][processes][way] for way in WAYS]
        places = [place + index * 0.4 for place in range(len(WAYS))]
        spread = [[abs(time["quartiles"][end] - time["median"]) for time in times] for end in (0, 1)]
        medians = [time["median"] for time in times]
        right.bar(places, medians, 0.38, yerr=spread, color=COLOURS[processes], ecolor="#444444", label=processes)
    right.set_xticks([place + 0.2 for place in range(len(WAYS))], WAYS, fontsize=9)
    right.set_title("milliseconds of a step, median and quartiles", loc="left", fontsize=11)
    for axes in (left, right):
        axes.legend(fontsize=8, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120, metadata={"Software": None})
