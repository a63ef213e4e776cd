"""What an elementwise operation costs that was made of one scalar function, beside other ways to make one."""

import torch

from interop.experiments import building, parser, results
from interop.experiments.display import progress, say, table, waiting
from interop.experiments.environment import environment

from . import measure, report


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(measure.NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(measure.NAME, report)
        return
    started = environment()  # before compiling, which adds to the load
    building.build_once(measure.NAME, "half a minute")
    with waiting("checking that all ways agree; torch.compile compiles"):
        measure.check()
    rounds, seconds = (3, 0.005) if options.quick else (30, 0.1)
    with progress("timing", len(measure.FUNCTIONS) * (len(measure.SIZES) + 1)) as shown:
        measured = {"times": measure.times(rounds, seconds, shown), "into": measure.into(rounds, seconds, shown)}
    measured["faults"] = measure.faults()
    settings = {"rounds": rounds, "seconds": seconds, "threads": torch.get_num_threads()}
    result = started | {"settings": settings, "flags": measure.FLAGS} | measured
    for what in measure.FUNCTIONS:
        table(f"{measure.FUNCTIONS[what]}, microseconds", ["", *report.HEAD], report.rows(result, what))
    say(report.ratios(result))
    results.keep(measure.NAME, result, report, record=options.record)
