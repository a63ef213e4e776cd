"""Monotonic alignment search, as text-to-speech models learn with: the usual core over NumPy, and Cython on tensors."""

from interop.experiments import building, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import measure, report
from .cases import CASES
from .ways import FLAGS, NAME


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(NAME, report)
        return
    started = environment()  # before compiling, which adds to the load
    building.build_once(NAME, "a quarter of a minute")
    cases, rounds, number = (CASES[-2:], 2, 1) if options.quick else (CASES, 30, 5)
    threads = [1, 2]
    with progress("comparing", len(cases)) as shown:
        items = 0
        for case in cases:
            items += measure.agreement(case)["items"]
            shown(case.label)
    settings = {"rounds": rounds, "calls": number, "threads": threads}
    result = started | {"settings": settings, "flags": FLAGS, "items": items, "times": {}}
    with progress("timing", rounds * len(threads) * len(cases)) as shown:
        for case in cases:
            result["times"][case.label] = {
                str(count): measure.times(case, count, rounds, number, shown) for count in threads
            }
    result["openmp"] = measure.openmp()
    for title, head, rows in report.tables(result):
        table(title, head, rows)
    say(report.sentences(result))
    results.keep(NAME, result, report, record=options.record)
