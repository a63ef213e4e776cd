"""What becomes of a compiled module where torch is not imported, copied, of another release, or elsewhere."""

from interop.experiments import building, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import measure, report


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(measure.NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(measure.NAME, report)
        return
    measure.find_patchelf()
    started = environment()  # before compiling, which adds to the load
    building.build_once(measure.NAME, "half a minute")
    with progress("importing", measure.count(options.quick)) as shown:
        cases = measure.measure(options.quick, shown)
    result = started | {"settings": {"other torch": measure.other.VERSION}, "flags": measure.FLAGS, "cases": cases}
    table("what becomes of it", list(report.HEAD), report.rows(result), words=range(len(report.HEAD)))
    say(report.summary(result))
    results.keep(measure.NAME, result, report, record=options.record)
