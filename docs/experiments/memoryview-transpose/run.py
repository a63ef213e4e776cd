"""What it costs to give a typed memoryview in a class other axes, and to get it back as an array or a tensor."""

import argparse

from experiments.harness import calls
from experiments.harness.driver import Experiment

from . import measure


def run(settings: dict, options: argparse.Namespace) -> dict:
    measure.check()
    return calls.measured(measure, settings, options.quick, "a minute")


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 40, "calls": 50_000},
    quick={"rounds": 5, "calls": 5_000},
    flags=measure.FLAGS,
    builds={measure.NAME: "a few seconds"},
)
