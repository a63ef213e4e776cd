"""One file for many releases of torch: its calls, its size and its compilation, against three other ways."""

import argparse

from torch.utils.benchmark import set_torch_threads

from experiments.harness import building, calls
from experiments.harness.display import progress
from experiments.harness.driver import Experiment

from . import measure, training, ways


def run(settings: dict, options: argparse.Namespace) -> dict:
    agreement = ways.check()
    with set_torch_threads(1):
        with progress("training", settings["steps"]) as shown:
            trained = training.train(settings, shown)
        with progress("timing", settings["rounds"] * len(ways.KERNELS)) as shown:
            times = measure.times(settings["rounds"], settings["calls"], shown)
    result = {"agreement": agreement, "training": trained, "times": times, "files": measure.sizes()}
    result["instructions"] = {} if options.quick else calls.count_if_possible(measure.instructions, "some minutes")
    rounds = settings["compilations"]
    with progress("compiling", rounds * measure.count_of_compilations(options.quick)) as shown:
        result["compiling"] = measure.compiling(rounds, options.quick, shown)
    return result


EXPERIMENT = Experiment(
    run,
    settings={
        # Blocks of about a millisecond: of many, most are not interrupted by another program.
        "rounds": 400,
        "calls": {"numel": 20_000, "relu": 500, "linear": 200, "segment_sum": 200, "forward": 10, "backward": 10},
        "compilations": 8,
        "steps": 60,
        "batch": 16,
        "length": 32,
        "features": 32,
        "state": 128,
    },
    quick={
        "rounds": 3,
        "calls": dict.fromkeys(ways.KERNELS, 50),
        "compilations": 1,
        "steps": 2,
    },
    flags=building.FLAGS,
    builds={ways.NAME: "some minutes"},
)
