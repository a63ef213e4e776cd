"""How long it takes from an edit to a module that runs, against torch's own way of loading C++."""

import argparse

from experiments.harness.display import progress
from experiments.harness.driver import Experiment

from . import measure


def run(settings: dict, _: argparse.Namespace) -> dict:
    rounds, cold = settings["rounds"], settings["cold"]
    with progress("loading", (1 + rounds + cold) * len(measure.WAYS)) as shown:
        found = measure.measure(rounds, cold, shown)
    with progress("translating", max(rounds, 1) * len(measure.TRANSLATED)) as shown:
        return found | {"translating": measure.translating(max(rounds, 1), shown)}


EXPERIMENT = Experiment(run, settings={"rounds": 5, "cold": 3}, quick={"rounds": 0, "cold": 0}, flags=measure.FLAGS)
