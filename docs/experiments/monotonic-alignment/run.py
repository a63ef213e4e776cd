"""Monotonic alignment search, as text-to-speech models learn with: the usual core over NumPy, and Cython on tensors."""

import argparse

from experiments.harness.display import progress
from experiments.harness.driver import Experiment

from . import measure
from .cases import CASES
from .ways import FLAGS, NAME


def run(settings: dict, options: argparse.Namespace) -> dict:
    cases, threads = CASES[-2:] if options.quick else CASES, settings["threads"]
    items, times = 0, {}
    with progress("comparing", len(cases)) as shown:
        for case in cases:
            items += measure.agreement(case)["items"]
            shown(case.label)
    with progress("timing", settings["rounds"] * len(threads) * len(cases)) as shown:
        for case in cases:
            times[case.label] = {
                str(count): measure.times(case, count, settings["rounds"], settings["calls"], shown)
                for count in threads
            }
    return {"items": items, "times": times, "openmp": measure.openmp()}


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 30, "calls": 5, "threads": [1, 2]},
    quick={"rounds": 2, "calls": 1},
    flags=FLAGS,
    builds={NAME: "a quarter of a minute"},
)
