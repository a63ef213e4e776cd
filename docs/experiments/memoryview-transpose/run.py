"""What it costs to give a typed memoryview in a class other axes, and to get it back as an array or a tensor."""

from interop.experiments import building, calls, parser, results
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
    building.build_once(measure.NAME, "a few seconds")
    measure.check()
    rounds, number = (5, 5_000) if options.quick else (40, 50_000)
    with progress("timing", rounds) as shown:
        times = measure.times(rounds, number, shown)
    settings = {"rounds": rounds, "calls": number}
    result = started | {"settings": settings, "flags": measure.FLAGS, "times": times, "instructions": {}}
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "a minute")
    table("one call", list(report.HEAD), report.rows(result))
    say(report.ratios(result))
    results.keep(measure.NAME, result, report, record=options.record)
