"""The LLTM cell in Python, through torch.compile, in C++ and in Cython: do they agree, and how fast are they?"""

from dataclasses import asdict, dataclass

import torch
from torch.utils.benchmark import set_torch_threads

from interop.cli import positive_int
from interop.experiments import building, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import agreement, data, model, report, timing, ways


@dataclass(frozen=True)
class Settings:
    """What is measured. A size is a batch, features and a state."""

    sizes: tuple[tuple[int, int, int], ...] = (
        (16, 32, 128),  # of the PyTorch tutorial, and of the models that are trained
        (16, 128, 512),
        (64, 32, 128),  # a batch above 32, for which the fused cell takes ATen's products
    )
    threads: tuple[int, ...] = (1, 2)
    length: int = 32
    steps: int = 300
    rounds: int = 60
    block_seconds: float = 0.02
    seed: int = 0


QUICK = {"sizes": Settings.sizes[:1], "steps": 20, "rounds": 5, "block_seconds": 0.005}


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
    with set_torch_threads(1):
        result = started | experiment(text, settings)

    for title, head, rows, words in report.tables(result):
        table(title, head, rows, words)
    say(report.sentences(result))
    results.keep(ways.NAME, result, report, record=options.record)


def experiment(text: data.Text, settings: Settings) -> dict:
    """Everything in order; returns what goes into the JSON."""
    result = {"settings": asdict(settings), "flags": building.LOOP_FLAGS}
    torch.manual_seed(settings.seed)
    largest = {report.size(shapes): agreement.check(*shapes) for shapes in settings.sizes}
    agreement.check_gradients()
    result["agreement"] = {"largest": largest, "gradcheck": True}
    say(report.agreement(result))

    batch, features, state = settings.sizes[0]
    batches = text.batches(batch, settings.length, settings.steps, settings.seed)
    models = {
        way: model.CharacterModel(cell, len(text.alphabet), features, state) for way, cell in ways.classes().items()
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

    with progress("timing", len(settings.sizes) * len(settings.threads) * settings.rounds) as shown:
        result["times"] = {
            report.size(shapes): {
                report.threads(count): timing.measure(*shapes, count, settings.rounds, settings.block_seconds, shown)
                for count in settings.threads
            }
            for shapes in settings.sizes
        }
    return result
