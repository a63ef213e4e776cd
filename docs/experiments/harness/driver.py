"""Runs an experiment from the command line to the tables: what its run.py declares, and what all have in common."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field

from experiments import load
from experiments.harness import overview, results
from experiments.harness.building import build_once
from experiments.harness.display import say, show
from experiments.harness.environment import environment
from interop.cli import UNAVAILABLE, CommandError, Parser

__all__ = ["UNAVAILABLE", "Experiment", "UnavailableError", "parser", "run"]


class UnavailableError(CommandError):
    """Ends an experiment that this machine cannot run. ``--all`` counts it as skipped, and not as failed."""

    def __init__(self, message: str):
        super().__init__(message, UNAVAILABLE)


@dataclass(frozen=True)
class Experiment:
    """What an experiment has of its own. The docstring of its run.py describes it.

    Attributes
    ----------
    measure
        Called with the settings and with the options of the command line. It returns what the result has beside
        settings, flags and environment.
    settings, quick
        The settings of a whole run, and what a quick one has instead of some of them.
    flags
        What the modules that are measured are compiled with.
    builds
        The experiments whose modules must be compiled, and how long that takes, in words.
    require
        Raises CommandError where this machine lacks what the experiment needs.
    add_arguments
        Adds the experiment's own options. An option with a setting's name replaces the setting.
    """

    measure: Callable[[dict, argparse.Namespace], dict]
    settings: dict
    quick: dict
    flags: list[str]
    builds: dict[str, str] = field(default_factory=dict)
    require: Callable[[], object] = lambda: None
    add_arguments: Callable[[Parser], object] = lambda _: None


def run(name: str, arguments: list[str]) -> None:
    """Run the experiment `name` with the command line `arguments`."""
    module, report = load(name), load(name, "report")
    experiment: Experiment = module.EXPERIMENT
    command = parser(name, module.__doc__)
    experiment.add_arguments(command)
    options = command.parse_args(arguments)
    if options.render:
        results.render(name, report)
        overview.refresh()
        return
    experiment.require()
    settings = experiment.settings | (experiment.quick if options.quick else {})
    settings |= {key: value for key, value in vars(options).items() if key in settings and value is not None}
    started = environment()  # before compiling, which adds to the load
    for built, how_long in experiment.builds.items():
        build_once(built, how_long)
    result = started | {"settings": settings, "flags": experiment.flags} | experiment.measure(settings, options)
    say(report.answer(result))
    for table in report.tables(result):
        show(table)
    if sentences := report.sentences(result):
        say(sentences)
    results.keep(name, result, report, record=options.record)
    if options.record:
        overview.refresh()


class _ExperimentParser(Parser):
    def parse_args(self, args=None, namespace=None):
        options = super().parse_args(args, namespace)
        if options.quick and options.record:
            self.error("--record wants the whole run: leave --quick out")
        return options


def parser(name: str, description: str) -> Parser:
    """A parser with the options that every experiment has."""
    result = _ExperimentParser(prog=f"python -m interop experiments {name}", description=description)
    result.add_argument("--quick", action="store_true", help="less of everything, to see that it works")
    result.add_argument(
        "--record", action="store_true", help="write the result into docs/experiments, to be committed, not into build"
    )
    result.add_argument(
        "--render",
        action="store_true",
        help="make plots, README.md and the table of all experiments again from what is recorded, and measure nothing",
    )
    return result
