"""A tensor as a member of a class, kept in four ways: memory, speed, lifetime, garbage collection, copies."""

from interop.experiments import building, calls, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import behaviour, measure, memory, report, ways


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(ways.NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(ways.NAME, report)
        return
    started = environment()  # before compiling, which adds to the load
    building.build_once(ways.NAME, "half a minute")
    measure.check()
    say("asking what is kept, collected and copied")
    answers = behaviour.behaviour()
    rounds, number, instances = (5, 2_000, 500) if options.quick else (40, 20_000, 5_000)
    say("measuring memory")
    sizes = memory.measure(instances)
    with progress("timing", rounds) as shown:
        times = measure.times(rounds, number, shown)
    settings = {"rounds": rounds, "calls": number, "instances": instances}
    result = started | {"settings": settings, "flags": building.FLAGS}
    result |= {"memory": sizes, "times": times, "instructions": {}, "behaviour": answers}
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "some minutes")
    table("memory and time of one instance", list(report.HEAD), report.rows(result))
    lines = [[what.replace("`", ""), *found] for what, *found in report.answers(result, behaviour.QUESTIONS)]
    table("what is kept, collected and copied", list(report.HEAD), lines, words=range(len(report.HEAD)))
    results.keep(ways.NAME, result, report, record=options.record)
