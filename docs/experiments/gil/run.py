"""What it costs to release the GIL, when it pays, and what takes it back unseen: the first copy of a tensor."""

import argparse
import sys

from torch.utils.benchmark import set_torch_threads

from experiments.harness import building, calls
from experiments.harness.display import progress
from experiments.harness.driver import Experiment
from interop.cli import CommandError

from . import measure, ways


def run(settings: dict, options: argparse.Namespace) -> dict:
    ways.check()
    gil = ways.has_gil()
    rounds, seconds = settings["rounds"], settings["seconds"]
    with set_torch_threads(1), progress("timing", rounds * (3 + 2 * len(ways.SIZES)) + len(ways.SIZES)) as shown:
        result = {
            "times": measure.times(rounds, settings["calls"], seconds / 10, shown),
            "copies": measure.copies(rounds, settings["copies"], shown),
            "sharing": measure.sharing(rounds, seconds, shown),
            "threads": measure.threads(rounds, seconds, shown),
            "loops": measure.loops(rounds, seconds),
        }
    counts = {} if options.quick else calls.count_if_possible(measure.instructions, "a minute")
    if ways.has_gil() != gil:
        raise CommandError("a module turned the GIL on while this was measured; PYTHON_GIL=0 leaves it off")
    return result | {"instructions": counts, "gil": gil}


EXPERIMENT = Experiment(
    run,
    settings={
        "rounds": 15,
        "calls": 100_000,
        "copies": 50,
        "seconds": 0.2,
        "switch interval": sys.getswitchinterval(),
    },
    quick={"rounds": 2, "calls": 10_000, "copies": 10, "seconds": 0.02},
    flags=building.FLAGS,
    builds={ways.NAME: "a quarter of a minute"},
)
