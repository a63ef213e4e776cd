"""What torch.Tensor, numpy.dtype and complex hold in C, read from Cython by mirror, header, function and attribute."""

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
    building.build_once(ways.NAME, "half a minute")
    ways.check()
    rounds, number = (5, 10_000) if options.quick else (40, 100_000)
    with progress("timing", rounds) as shown:
        times = measure.times(rounds, number, shown)
    result = started | {
        "settings": {"rounds": rounds, "calls": number},
        "flags": building.FLAGS,
        "layout": ways.layout(),
        "handle": building.native(ways.NAME, "unpack_functions").c_function(),
        "times": times,
        "instructions": {},
        "compiling": {},
        "caught": {},
    }
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "a minute")
        with progress("compiling", 5) as shown:
            result["compiling"] = measure.compiling(shown)
            result["caught"] = measure.caught(shown)
    table("what the objects hold", list(report.LAYOUT_HEAD), report.layout_rows(result), words=(0, 1))
    table("one read", list(report.HEAD), report.rows(result))
    say(report.sentences(result))
    results.keep(ways.NAME, result, report, record=options.record)
