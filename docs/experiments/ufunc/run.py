"""What an elementwise operation costs that was made of one scalar function, beside other ways to make one."""

import argparse

import torch

from experiments.harness.display import progress, waiting
from experiments.harness.driver import Experiment

from . import measure


def run(settings: dict, _: argparse.Namespace) -> dict:
    rounds, seconds = settings["rounds"], settings["seconds"]
    with waiting("checking that all ways agree; torch.compile compiles"):
        measure.check()
    with progress("timing", len(measure.FUNCTIONS) * (2 * len(measure.SIZES) + 1)) as shown:
        measured = {"times": measure.times(rounds, seconds, shown), "into": measure.into(rounds, seconds, shown)}
        measured["clang"] = measure.clang(rounds, seconds, shown)
    return measured | {"faults": measure.faults()}


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 30, "seconds": 0.1, "threads": torch.get_num_threads()},
    quick={"rounds": 3, "seconds": 0.005},
    flags=measure.FLAGS,
    builds={measure.NAME: "half a minute"},
)
