"""How long it takes from an edit to a module that runs, against torch's own way of loading C++."""

from interop.experiments import parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import measure, report


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(measure.NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(measure.NAME, report)
        return
    started = environment()  # before compiling, which adds to the load
    rounds, cold = (0, 0) if options.quick else (5, 3)
    with progress("loading", (1 + rounds + cold) * len(measure.WAYS)) as shown:
        measured = measure.measure(rounds, cold, shown)
    settings = {"rounds": rounds, "cold": cold}
    result = started | {"settings": settings, "flags": measure.FLAGS} | measured
    table("loading a module", list(report.HEAD), report.rows(result))
    say(report.ratios(result))
    results.keep(measure.NAME, result, report, record=options.record)
