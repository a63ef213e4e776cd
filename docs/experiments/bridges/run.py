"""What it costs to go from arrays and buffers to tensors and back, against torch and against the buffers of NumPy."""

from interop.experiments import building, calls, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import measure, report


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    command = parser(measure.NAME, __doc__)
    options = command.parse_args(arguments)
    if options.render:
        results.render(measure.NAME, report)
        return
    started = environment()  # before compiling, which adds to the load
    building.build_once(measure.NAME, "a few seconds")
    rounds, number = (5, 5_000) if options.quick else (40, 50_000)
    with progress("timing", rounds * len(measure.cases())) as shown:
        times = measure.times(rounds, number, shown)
    settings = {"rounds": rounds, "calls": number}
    result = started | {"settings": settings, "flags": measure.FLAGS, "times": times, "instructions": {}}
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "two minutes")
    table("one conversion", list(report.HEAD), report.rows(result))
    say(report.ratios(result))
    results.keep(measure.NAME, result, report, record=options.record)
