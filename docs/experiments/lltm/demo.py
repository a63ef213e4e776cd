"""What ``make demo`` runs: trains the cell in Python, C++ and Cython on a text, times it, and shows a table and a plot.

One size, on one thread, in less than a minute, and nothing is recorded. The whole experiment is
``python -m interop experiments lltm``.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.benchmark import set_torch_threads

from experiments.harness import building, plots, results
from experiments.harness.display import progress, race, say, show
from experiments.harness.environment import environment
from experiments.harness.tables import Table
from interop.cli import CommandError, run

from . import agreement, data, model, report, timing, ways

WAYS = ("Python", "C++", "Cython", "Cython fused")
HEAD = ("the cell in", "step, ms", "loss", "forward", "backward", "both", "faster")  # fits into 80 columns
SETTINGS = {"size": (16, 32, 128), "length": 32, "steps": 300, "rounds": 30, "block_seconds": 0.01, "seed": 0}
RESULT = building.BUILD / ways.NAME / "demo.json"


def main() -> int:
    """Run the demo; the exit status."""
    try:
        modules = [ways.MODULES[way] for way in WAYS if way in ways.MODULES]
        building.build_once(ways.NAME, "about half a minute", modules)
        result = environment() | {"settings": SETTINGS, "flags": building.LOOP_FLAGS} | measure(SETTINGS)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    show(table(result))
    say(agreed(result))
    results.write(RESULT, result, draw)
    say(f"plot: {os.path.relpath(RESULT.with_suffix(results.SUFFIX))}")
    say("more sizes and forms of the cell, in some minutes: .venv/bin/python -m interop experiments lltm")
    say("a module of your own: docs/start.md")
    return 0


def measure(settings: dict) -> dict:
    """Check that the cells agree, train a model with each, and time one call of each."""
    batch, features, state = size = settings["size"]
    text = data.default()
    with set_torch_threads(1):
        torch.manual_seed(settings["seed"])
        largest = agreement.check(*size, WAYS)
        batches = list(text.batches(batch, settings["length"], settings["steps"], settings["seed"]))
        models = {
            way: model.CharacterModel(cell, len(text.alphabet), features, state)
            for way, cell in ways.classes(WAYS).items()
        }
        for other in models.values():
            other.load_state_dict(models["Python"].state_dict())
        say(f"training a model of {text.name}, {len(text.indices)} characters, with each form of the cell: about 10 s")
        with race("training", list(WAYS), settings["steps"]) as shown:
            losses, seconds = train(models, batches, shown)
        with progress("timing one call of each", settings["rounds"], lines=2) as timed:
            times = timing.measure(*size, 1, settings["rounds"], settings["block_seconds"], timed, WAYS)
    trained = {"text": text.name, "steps": settings["steps"], "losses": losses, "seconds": seconds}
    return {"agreement": largest, "training": trained, "times": times}


def train(
    models: dict[str, model.CharacterModel],
    batches: list[Tensor],
    shown: Callable[[str, str], None],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Train all `models` on the same `batches`: their losses, and the seconds that each had used after each step.

    The next step is that of the model which has used the least time so far, so the quickest is ahead.
    """
    optimizers = {way: model.optimizer(one) for way, one in models.items()}
    losses: dict[str, list[float]] = {way: [] for way in models}
    seconds: dict[str, list[float]] = {way: [] for way in models}
    used = dict.fromkeys(models, 0.0)
    while running := [way for way in models if len(losses[way]) < len(batches)]:
        way = min(running, key=lambda other: used[other])
        begin = clock()
        loss = model.step(models[way], optimizers[way], batches[len(losses[way])])
        used[way] += clock() - begin
        losses[way].append(round(loss, 5))
        seconds[way].append(round(used[way], 4))
        shown(way, f"loss {loss:.2f} after {used[way]:.1f} s")
    return losses, seconds


def table(result: dict) -> Table:
    """A line for each way."""
    run, rows = result["training"], []
    both = {way: time["median"] for way, time in result["times"]["both"].items()}
    for way in WAYS:
        last = report.trailing_mean(run["losses"][way])[-1]
        calls = [f"{result['times'][what][way]['median']:.0f}" for what in report.LABELS]
        step = 1000 * run["seconds"][way][-1] / run["steps"]
        rows.append([way, f"{step:.1f}", f"{last:.2f}", *calls, f"{both['Python'] / both[way]:.2f} x"])
    shapes = "batch {}, features {}, state {}".format(*result["settings"]["size"])
    loss = f"the mean loss of the last {report.SMOOTH} steps"
    return Table(HEAD, rows, title=f"a step of training, {loss}, and µs of one call at {shapes}, on one thread")


def agreed(result: dict) -> str:
    """How far the forms agree, in a sentence."""
    largest = max(result["agreement"]["float32"].values())
    return f"Outputs and gradients in float32 differ from Python's by at most {largest:.0e} of the largest value."


def draw(result: dict, path: Path) -> None:
    """Plot the losses over the time and the times of one call into the file `path`."""
    figure = plots.figure(6.6)
    losses, times = figure.subplots(2, 1)
    run = result["training"]
    for way in WAYS:
        losses.plot(run["seconds"][way], report.trailing_mean(run["losses"][way]), color=report.COLOURS[way])
    losses.set_xlabel(f"seconds of training; a mean of {report.SMOOTH} steps")
    losses.set_ylabel("loss, nats per character")
    plots.plain(losses, f"{run['steps']} steps on {run['text']}", "both")
    report.draw_times(times, result["times"], "One call")
    plots.key(times, 3)
    plots.save(figure, path, first=False)


if __name__ == "__main__":
    sys.exit(run(main))
