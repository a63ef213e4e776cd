"""What it costs to release the GIL, when it pays, and what takes it back unseen: the first copy of a tensor."""

import sys

import torch

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
    building.build_once(ways.NAME, "a quarter of a minute")
    ways.check()
    rounds, number, copies, seconds = (2, 10_000, 10, 0.02) if options.quick else (15, 100_000, 50, 0.2)
    settings = {"rounds": rounds, "calls": number, "copies": copies, "seconds": seconds}
    settings["switch interval"] = sys.getswitchinterval()
    result = started | {"settings": settings, "flags": building.FLAGS, "gil": ways.has_gil()}
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with progress("timing", rounds * (3 + 3 * len(ways.SIZES))) as shown:
            result["times"] = measure.times(rounds, number, seconds / 10, shown)
            result["copies"] = measure.copies(rounds, copies, shown)
            result["sharing"] = measure.sharing(rounds, seconds, shown)
            result["threads"] = measure.threads(rounds, seconds, shown)
    finally:
        torch.set_num_threads(before)
    result["instructions"] = {}
    if not options.quick:
        result["instructions"] = calls.count_if_possible(measure.instructions, "a minute")
    for title, head, rows in report.tables(result):
        table(title, head, rows)
    say(report.sentences(result))
    results.keep(ways.NAME, result, report, record=options.record)
