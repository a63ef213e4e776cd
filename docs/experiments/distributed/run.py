"""The LLTM trained by DistributedDataParallel in two processes: are its gradients those of one?"""

from torch import distributed

from interop.experiments import UnavailableError, building, parser, results
from interop.experiments.display import say, table, waiting
from interop.experiments.environment import environment

from . import compare, report, worker

SETTINGS = {"batch": 16, "features": 32, "state": 128, "length": 32, "steps": 60, "timed": 60}
QUICK = {"steps": 4, "timed": 4}


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(compare.NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(compare.NAME, report)
        return
    if not (distributed.is_available() and distributed.is_gloo_available()):
        raise UnavailableError("this torch is built without gloo, over which the processes talk")
    started = environment()  # before compiling, which adds to the load
    building.build_once("lltm", "a minute or so")
    settings = SETTINGS | (QUICK if options.quick else {})
    with waiting("training in one process, then in two"):
        one, several = compare.both(settings)
    result = started | {"settings": settings, "flags": building.LOOP_FLAGS}
    result["agreement"] = compare.agreement(one, several)
    result["losses"] = compare.losses(one, several, worker.PLAIN)
    result["times"] = compare.times(one, several)
    table("two processes against one", list(report.HEAD), report.rows(result))
    say(report.summary(result))
    results.keep(compare.NAME, result, report, record=options.record)
