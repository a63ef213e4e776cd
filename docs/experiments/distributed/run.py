"""The LLTM trained by DistributedDataParallel in two processes: are its gradients those of one?"""

import argparse

from torch import distributed

from experiments.harness import building
from experiments.harness.display import waiting
from experiments.harness.driver import Experiment, UnavailableError

from . import compare, worker


def require() -> None:
    if not (distributed.is_available() and distributed.is_gloo_available()):
        raise UnavailableError("this torch is built without gloo, over which the processes talk")


def run(settings: dict, _: argparse.Namespace) -> dict:
    with waiting("training in one process, then in two"):
        one, several = compare.both(settings)
    return {
        "agreement": compare.agreement(one, several),
        "losses": compare.losses(one, several, worker.PLAIN),
        "times": compare.times(one, several),
    }


EXPERIMENT = Experiment(
    run,
    settings={"batch": 16, "features": 32, "state": 128, "length": 32, "steps": 60, "timed": 60},
    quick={"length": 8, "steps": 3, "timed": 3},
    flags=building.LOOP_FLAGS,
    builds={"lltm": "a minute or so"},
    require=require,
)
