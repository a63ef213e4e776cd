"""What a registered operator costs, and a function with a gradient: in Cython, in C++ and in Python."""

import argparse

from experiments.harness import building, calls
from experiments.harness.driver import Experiment

from . import measure, ways


def run(settings: dict, options: argparse.Namespace) -> dict:
    ways.check()
    return calls.measured(measure, settings, options.quick, "some minutes")


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 400, "calls": 100},
    quick={"rounds": 5, "calls": 20},
    flags=building.FLAGS,
    builds={ways.NAME: "a minute"},
)
