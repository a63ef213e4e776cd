"""What one call from Python into compiled code costs, by nine tools, and what compiling it costs."""

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
    for way in ways.missing():
        say(f"without {way}: it is not installed; pip install -r requirements/experiments.txt")
    ways.check()
    rounds, number, with_tensors, compilations = (5, 10_000, 500, 1) if options.quick else (40, 100_000, 10_000, 3)
    with progress("timing", 2 * rounds) as shown:
        times = measure.times(rounds, number, shown)
        times |= measure.times_of_tensors(rounds, with_tensors, shown)
    settings = {
        "rounds": rounds,
        "calls": number,
        "calls with tensors": with_tensors,
        "compilations": compilations,
    }
    result = started | {"settings": settings, "flags": ways.FLAGS, "tools": ways.tools(), "times": times}
    result |= {"instructions": {}, "compiling": {}}
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "some minutes")
        with progress("compiling", 8 * compilations) as shown:
            result["compiling"] = measure.compiling(compilations, shown)
    with progress("translating", 2 * compilations) as shown:
        result["translating"] = measure.translating(compilations, shown)
    table("one call", list(report.HEAD), report.rows(result))
    for unit, _ in results.units(result):
        table(f"{report.UNITS[unit]} of a call with tensors", ["", *ways.COUNTS], report.rows_of_tensors(result, unit))
    say(report.ratios(result))
    results.keep(ways.NAME, result, report, record=options.record)
