"""The LLTM cell in Python, through torch.compile, in C++ and in Cython: do they agree, and how fast are they?"""

from dataclasses import asdict, dataclass

import torch

from interop.cli import positive_int
from interop.experiments import building, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import agreement, data, model, report, timing, ways


@dataclass(frozen=True)
class Settings:
    """What is measured. The shapes are those of the PyTorch tutorial."""

    batch: int = 16
    features: int = 32
    state: int = 128
    length: int = 32
    steps: int = 300
    rounds: int = 60
    block_seconds: float = 0.02
    seed: int = 0


QUICK = {"steps": 20, "rounds": 5, "block_seconds": 0.005}


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    command = parser(ways.NAME, __doc__)
    command.add_argument(
        "--text", metavar="FILE", help="what the models learn: a text in UTF-8 (default: Python's licence)"
    )
    command.add_argument("--steps", type=positive_int, metavar="N", help=f"of training (default: {Settings.steps})")
    options = command.parse_args(arguments)
    if options.render:
        results.render(ways.NAME, report)
        return
    text = data.read(options.text) if options.text is not None else data.default()
    settings = Settings(**(QUICK if options.quick else {}) | ({"steps": options.steps} if options.steps else {}))

    started = environment()  # before compiling, which adds to the load
    building.build_once(ways.NAME, "a minute or so")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        result = started | experiment(text, settings)
    finally:
        torch.set_num_threads(threads)

    table(
        "microseconds, median; both: forward and backward, with a new graph each time",
        list(report.HEAD),
        report.rows(result),
    )
    results.keep(ways.NAME, result, report, record=options.record)


def experiment(text: data.Text, settings: Settings) -> dict:
    """Everything in order; returns what goes into the JSON."""
    result = {"settings": asdict(settings), "flags": building.LOOP_FLAGS}
    shapes = settings.batch, settings.features, settings.state
    torch.manual_seed(settings.seed)
    result["agreement"] = {"largest": agreement.check(*shapes), "gradcheck": True}
    say(report.agreement(result))

    batches = text.batches(settings.batch, settings.length, settings.steps, settings.seed)
    models = {
        way: model.CharacterModel(cell, len(text.alphabet), settings.features, settings.state)
        for way, cell in ways.classes().items()
    }
    for other in models.values():
        other.load_state_dict(models["Python"].state_dict())
    with progress("training", settings.steps) as shown:
        losses = model.train(models, batches, shown)
    result["training"] = {
        "text": text.name,
        "characters": len(text.indices),
        "steps": settings.steps,
        "losses": {way: [round(loss, 5) for loss in values] for way, values in losses.items()},
    }
    say(report.training(result))

    with progress("timing", settings.rounds) as shown:
        result["times"] = timing.measure(*shapes, settings.rounds, settings.block_seconds, shown)
    return result
