"""What torch.Tensor, numpy.dtype and complex hold in C, read from Cython by mirror, header, function and attribute."""

import argparse

from experiments.harness import building, calls
from experiments.harness.display import progress
from experiments.harness.driver import Experiment

from . import measure, ways


def run(settings: dict, options: argparse.Namespace) -> dict:
    ways.check()
    result = {
        "layout": ways.layout(),
        "handle": building.native(ways.NAME, "unpack_functions").c_function(),
        "compiling": {},
        "caught": {},
    } | calls.measured(measure, settings, options.quick, "a minute")
    if not options.quick:
        with progress("compiling", 5) as shown:
            result |= {"compiling": measure.compiling(shown), "caught": measure.caught(shown)}
    return result


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 40, "calls": 100_000},
    quick={"rounds": 5, "calls": 10_000},
    flags=building.FLAGS,
    builds={ways.NAME: "half a minute"},
)
