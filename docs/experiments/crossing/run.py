"""What one call from Python into compiled code costs, by nine tools, and what compiling it costs."""

import argparse

from experiments.harness import calls
from experiments.harness.display import progress, say
from experiments.harness.driver import Experiment

from . import measure, ways


def run(settings: dict, options: argparse.Namespace) -> dict:
    for way in ways.missing():
        say(f"without {way}: it is not installed; pip install -r requirements/experiments.txt")
    ways.check()
    rounds, compilations = settings["rounds"], settings["compilations"]
    result = {"tools": ways.tools(), "compiling": {}} | calls.measured(measure, settings, options.quick, "some minutes")
    with progress("timing calls with tensors", rounds) as shown:
        result["times"] |= measure.times_of_tensors(rounds, settings["calls with tensors"], shown)
    if not options.quick:
        with progress("compiling", 8 * compilations) as shown:
            result["compiling"] = measure.compiling(compilations, shown)
    with progress("translating", 2 * compilations) as shown:
        result["translating"] = measure.translating(compilations, shown)
    return result


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 40, "calls": 100_000, "calls with tensors": 10_000, "compilations": 3},
    quick={"rounds": 5, "calls": 10_000, "calls with tensors": 500, "compilations": 1},
    flags=ways.FLAGS,
    builds={ways.NAME: "a minute"},
)
