"""A tensor as a member of a class, kept in four ways: memory, speed, lifetime, garbage collection, copies."""

import argparse

from experiments.harness import building, calls
from experiments.harness.display import say
from experiments.harness.driver import Experiment

from . import behaviour, measure, memory, ways


def run(settings: dict, options: argparse.Namespace) -> dict:
    measure.check()
    say("asking what is kept, collected and copied")
    answers = behaviour.behaviour()
    say("measuring memory")
    sizes = memory.measure(settings["instances"])
    return calls.measured(measure, settings, options.quick, "some minutes") | {"memory": sizes, "behaviour": answers}


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 40, "calls": 20_000, "instances": 5_000},
    quick={"rounds": 5, "calls": 2_000, "instances": 500},
    flags=building.FLAGS,
    builds={ways.NAME: "half a minute"},
)
