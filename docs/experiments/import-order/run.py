"""What becomes of a compiled module where torch is not imported, copied, of another release, or elsewhere."""

import argparse

from experiments.harness.display import progress
from experiments.harness.driver import Experiment

from . import measure


def run(_: dict, options: argparse.Namespace) -> dict:
    with progress("importing", measure.count(options.quick)) as shown:
        return {"cases": measure.measure(options.quick, shown)}


EXPERIMENT = Experiment(
    run,
    settings={"other torch": measure.other.VERSION},
    quick={},
    flags=measure.FLAGS,
    builds={measure.NAME: "half a minute"},
    require=measure.find_patchelf,
)
