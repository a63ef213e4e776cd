"""A gradient computed with SciPy inside an autograd node: the mistakes, the right way, and what it costs."""

import importlib.metadata

import torch

from interop.cli import CommandError
from interop.experiments import building, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import measure, report, ways


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    options = parser(ways.NAME, __doc__).parse_args(arguments)
    if options.render:
        results.render(ways.NAME, report)
        return
    try:
        versions = {name: importlib.metadata.version(name) for name in ("scipy", "numpy")}
    except importlib.metadata.PackageNotFoundError as error:
        raise CommandError(f"experiment {ways.NAME} needs {error.name}; run: pip install {error.name}") from error
    started = environment()  # before compiling, which adds to the load
    building.build_once(ways.NAME, "some seconds")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        result = started | versions | experiment(options.quick)
    finally:
        torch.set_num_threads(threads)
    lines = [[text.replace("`", ""), *found[:1]] for text, *found in report.mistakes(result)]
    table("the gradient of each version", ["", "gradient"], lines, words=(0, 1))
    table("one call", list(report.HEAD), report.rows(result))
    say(report.summary(result))
    results.keep(ways.NAME, result, report, record=options.record)


def experiment(quick: bool) -> dict:
    """Everything in order; returns what goes into the JSON."""
    from . import mistakes  # here, because it imports SciPy

    rounds = 3 if quick else 30
    result = {"settings": {"rounds": rounds}, "flags": building.FLAGS}
    say("checking the results and the gradients")
    result["agreement"] = ways.check()
    result["mistakes"] = mistakes.mistakes()
    with progress("timing", len(measure.SIZES)) as shown:
        result["times"] = measure.times(rounds, shown)
    result["conversions"] = measure.conversions(rounds, 2_000)
    return result
