"""The LLTM cell in Python, through torch.compile, in C++ and in Cython: do they agree, and how fast are they?"""

import argparse

import torch
from torch.utils.benchmark import set_torch_threads

from experiments.harness import building
from experiments.harness.display import progress
from experiments.harness.driver import Experiment
from interop.cli import Parser, positive_int

from . import agreement, data, model, report, timing, ways

SETTINGS = {
    "sizes": [  # each a batch, features and a state
        (16, 32, 128),  # of the PyTorch tutorial, and of the models that are trained
        (16, 128, 512),
        (64, 32, 128),
    ],
    "threads": [1, 2],
    "length": 32,
    "steps": 300,
    "rounds": 60,
    "block_seconds": 0.02,
    "seed": 0,
}


def add_arguments(command: Parser) -> None:
    command.add_argument(
        "--text",
        metavar="FILE",
        type=data.read,
        help="what the models learn: a text in UTF-8 (default: Python's licence)",
    )
    command.add_argument("--steps", type=positive_int, metavar="N", help=f"of training (default: {SETTINGS['steps']})")


def run(settings: dict, options: argparse.Namespace) -> dict:
    sizes = settings["sizes"]
    with set_torch_threads(1):
        torch.manual_seed(settings["seed"])
        largest = {report.size(shapes): agreement.check(*shapes) for shapes in sizes}
        agreement.check_gradients()
        trained = train(options.text or data.default(), settings)
        steps = (len(sizes) * len(settings["threads"]) + 1) * settings["rounds"]
        with progress("timing", steps) as shown:
            # The widest, once as glibc does it by itself.
            widest = max(sizes, key=lambda shapes: shapes[2])
            wanted = [way for way in ways.WAYS if way != "torch.compile"]
            returned = timing.measure(*widest, 1, settings["rounds"], settings["block_seconds"], shown, wanted)
            timing.keep_memory()
            times = {
                report.size(shapes): {
                    report.threads(count): timing.measure(
                        *shapes, count, settings["rounds"], settings["block_seconds"], shown
                    )
                    for count in settings["threads"]
                }
                for shapes in sizes
            }
    return {
        "agreement": {"largest": largest, "gradcheck": True},
        "training": trained,
        "times": times,
        "memory returned": {"size": report.size(widest), "threads": report.threads(1), "times": returned},
    }


def train(text: data.Text, settings: dict) -> dict:
    """A model of each way learns `text`, all from the same parameters: what it was, and the losses."""
    batch, features, state = settings["sizes"][0]
    batches = text.batches(batch, settings["length"], settings["steps"], settings["seed"])
    models = {
        way: model.CharacterModel(cell, len(text.alphabet), features, state) for way, cell in ways.classes().items()
    }
    for other in models.values():
        other.load_state_dict(models["Python"].state_dict())
    with progress("training", settings["steps"]) as shown:
        losses = model.train(models, batches, shown)
    return {
        "text": text.name,
        "characters": len(text.indices),
        "steps": settings["steps"],
        "losses": {way: [round(loss, 5) for loss in values] for way, values in losses.items()},
    }


EXPERIMENT = Experiment(
    run,
    settings=SETTINGS,
    quick={"sizes": SETTINGS["sizes"][:1], "steps": 20, "rounds": 5, "block_seconds": 0.005},
    flags=building.LOOP_FLAGS,
    builds={ways.NAME: "a minute or so"},
    add_arguments=add_arguments,
)
