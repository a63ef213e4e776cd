"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots
from experiments.harness.tables import Table

from .worker import PLACED, PLAIN, PYTHON, SHARDED, WAYS

PROCESSES = ("one process", "two processes")
COLOURS = {"one process": "#b8bcc4", "two processes": "#6b727d"}
MEASURED = (
    "docs/experiments/lltm/*.pyx",
    "docs/experiments/lltm/*.cpp",
    "csrc/include/interop/autograd.h",
    "csrc/include/interop/operator.h",
)
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "The loss over the steps with one process and with two; below: the time of a step of each cell"


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    largest = {
        way: max(found[way]["gradients"] for found in result["agreement"].values() if way in found) for way in WAYS
    }
    return (
        f"Yes: two processes get the gradients of one to within {max(largest.values()):.0e} of the largest in float64, "
        f"with every cell, in Cython, C++ and plain PyTorch, under {_wrappers(result)}."
    )


def _wrappers(result: dict) -> str:
    """The names of what the models were trained under."""
    *most, last = ("DistributedDataParallel", *(mode for mode in (SHARDED, PLACED) if mode in result["agreement"]))
    return f"{', '.join(most)} and {last}" if most else last


def tables(result: dict) -> list[Table]:
    """The table: differences and buckets by mode, then times."""
    lines = []
    for mode, ways in result["agreement"].items():
        for what in ("gradients", "parameters"):
            found = (f"{ways[way][what]:.0e}" if way in ways else "-" for way in WAYS)
            lines.append([f"{mode}: {what} differ by", *found])
        if ways[PYTHON]["buckets"] is not None:
            lines.append([f"{mode}: buckets reduced", *(str(ways[way]["buckets"]) for way in WAYS)])
    for processes in PROCESSES:
        times = result["times"][processes]
        lines.append([f"milliseconds of a step, {processes}", *(f"{times[way]['median']:.1f}" for way in WAYS)])
    return [Table(("", *WAYS), lines)]


def sentences(result: dict) -> str:
    """What was compared, and how the loss went, in sentences."""
    losses = result["losses"]["two processes"]
    ends = ", ".join(f"{losses[way][-1]:.3f} ({way})" for way in WAYS)
    return (
        "Differences are relative to the largest value, in float64: of gradients after the first step, of parameters "
        f"after {result['settings']['steps']}. The two processes have the same to the bit. The loss went from "
        f"{losses[WAYS[0]][0]:.3f} to {ends} nats per character."
    )


def draw(result: dict, path: Path) -> None:
    """Plot the losses and the times of `result` into the file `path`."""
    figure = plots.figure(5.6)
    upper, lower = figure.subplots(2, 1)
    for processes in PROCESSES:
        values = result["losses"][processes]["Cython op"]
        style = {"linewidth": 4, "alpha": 0.5} if processes == PROCESSES[0] else {"linewidth": 1.2}
        upper.plot(range(1, len(values) + 1), values, color=COLOURS[processes], label=processes, **style)
    plots.plain(upper, f"Loss of Cython op, {PLAIN}", "")
    upper.set_xlabel("step")
    upper.set_ylabel("nats per character")
    for index, processes in enumerate(PROCESSES):
        times = [result["times"][processes][way] for way in WAYS]
        places = [place + index * 0.4 for place in range(len(WAYS))]
        medians, spread = [time["median"] for time in times], plots.spread(times)
        lower.bar(places, medians, 0.38, yerr=spread, color=COLOURS[processes], ecolor=plots.ERRORS)
    lower.set_xticks([place + 0.2 for place in range(len(WAYS))], [plots.folded(way, 8) for way in WAYS])
    plots.plain(lower, "Milliseconds of a step, median and quartiles", "")
    plots.key(upper, 2)
    plots.save(figure, path)
