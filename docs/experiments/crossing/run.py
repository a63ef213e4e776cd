"""What one call from Python into compiled code costs, with and without a tensor in it, and what compiling it costs."""

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
    building.build_once(measure.NAME, "half a minute")
    rounds, number, compilations = (5, 10_000, 1) if options.quick else (40, 100_000, 3)
    with progress("timing", rounds) as shown:
        times = measure.times(rounds, number, shown)
    settings = {"rounds": rounds, "calls": number, "compilations": compilations}
    result = started | {"settings": settings, "flags": measure.FLAGS, "times": times}
    result["instructions"] = {}
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "a minute")
    with progress("compiling", 2 * compilations) as shown:
        result["compiling"] = measure.compiling(compilations, shown)
    with progress("translating", 2 * compilations) as shown:
        result["translating"] = measure.translating(compilations, shown)
    table("one call", list(report.HEAD), report.rows(result))
    say(report.ratios(result))
    results.keep(measure.NAME, result, report, record=options.record)
