"""A gradient computed with SciPy inside an autograd node: the mistakes, the right way, and what it costs."""

import argparse
import importlib.metadata

from torch.utils.benchmark import set_torch_threads

from experiments.harness import building
from experiments.harness.display import progress, say
from experiments.harness.driver import Experiment
from interop.cli import CommandError

from . import measure, ways


def versions() -> dict[str, str]:
    try:
        return {name: importlib.metadata.version(name) for name in ("scipy", "numpy")}
    except importlib.metadata.PackageNotFoundError as error:
        raise CommandError(f"experiment {ways.NAME} needs {error.name}; run: pip install {error.name}") from error


def run(settings: dict, _: argparse.Namespace) -> dict:
    from . import mistakes  # here, because it imports SciPy

    result = versions()
    with set_torch_threads(1):
        say("checking the results and the gradients")
        result["agreement"] = ways.check()
        result["mistakes"] = mistakes.mistakes()
        with progress("timing", len(measure.SIZES)) as shown:
            result["times"] = measure.times(settings["rounds"], shown)
        result["conversions"] = measure.conversions(settings["rounds"], 2_000)
    return result


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 30},
    quick={"rounds": 3},
    flags=building.FLAGS,
    builds={ways.NAME: "some seconds"},
    require=versions,
)
