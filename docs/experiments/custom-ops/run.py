"""What a registered operator costs, and a function with a gradient: in Cython, in C++ and in Python."""

from interop.experiments import building, calls, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import measure, report, ways


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(ways.NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(ways.NAME, report)
        return
    started = environment()  # before compiling, which adds to the load
    building.build_once(ways.NAME, "a minute")
    ways.check()
    rounds, number = (5, 20) if options.quick else (400, 100)
    with progress("timing", rounds) as shown:
        times = measure.times(rounds, number, shown)
    settings = {"rounds": rounds, "calls": number}
    result = started | {"settings": settings, "flags": building.FLAGS, "times": times, "instructions": {}}
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "some minutes")
    table("one call", list(report.HEAD), report.rows(result))
    say(report.ratios(result))
    results.keep(ways.NAME, result, report, record=options.record)
