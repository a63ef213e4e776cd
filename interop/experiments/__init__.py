"""Runs the experiments of a checkout: ``python -m interop experiments NAME``, for every docs/experiments/NAME/run.py.

``--all`` runs them one after the other: see `runner`.

An experiment's run.py has a function ``main(arguments)``. It parses them with `parser`, compiles its setup.py with
`building.build`, shows what it does with `display`, and hands its result to `results.keep`, with its report.py, whose
``draw(result, path)`` makes the plot and ``section(machine, result)`` the text of README.md.
"""

import argparse
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from interop.cli import USAGE, CommandError, Parser

__all__ = ["CHECKOUT", "FOLDER", "UNAVAILABLE", "UnavailableError", "load", "main", "names", "parser"]

CHECKOUT = Path(__file__).resolve().parents[2]
"""The checkout that this package lies in, if it lies in one."""

FOLDER = CHECKOUT / "docs" / "experiments"
"""Where the experiments lie. A wheel has none of them."""

UNAVAILABLE = 77
"""The exit status of an experiment that this machine cannot run: what automake's and Meson's tests skip with."""

# Experiments are imported as parts of this package, which is in no folder: their modules (data, model, ...) can then
# neither hide other modules nor one another's.
_PACKAGE = "interop_experiments"


class UnavailableError(CommandError):
    """Ends an experiment that this machine cannot run. ``--all`` counts it as skipped, and not as failed."""

    def __init__(self, message: str):
        super().__init__(message, UNAVAILABLE)


def main(arguments: list[str]) -> int | None:
    """Run ``python -m interop experiments`` with `arguments`, and return the exit status; None for 0."""
    ours, theirs = arguments, []
    if "--" in arguments:
        ours, theirs = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    command = Parser(
        prog="python -m interop experiments",
        usage="%(prog)s [NAME | --all | --list] [--quick] [--record] [--render] [[--] ARGUMENTS...]",
        description="Run an experiment, or all of them, or list them. NAME --help shows the arguments of one.",
        add_help=False,
    )
    command.add_argument("name", metavar="NAME", nargs="?", help="which experiment to run")
    command.add_argument(
        "--all", action="store_true", help="run them all, each in its own process; 1 at the end if one failed"
    )
    command.add_argument("--list", action="store_true", help="list the experiments")
    command.add_argument("-h", "--help", action="store_true", help="show this, or the arguments of NAME")
    options, unknown = command.parse_known_args(ours)
    if options.all:
        return _main_of_all(command, options, [*unknown, *theirs])
    if options.help and not options.name:
        command.print_help()
    elif options.list or not options.name:
        if unknown:
            command.error(f"unrecognized arguments: {' '.join(unknown)}")
        for name in names():
            print(f"{name:<22}{_title(name)}")
    else:
        load(options.name).main([*(["--help"] if options.help else []), *unknown, *theirs])
    return None


def _main_of_all(command: Parser, options: argparse.Namespace, arguments: list[str]) -> int:
    for wrong in ("name", "list", "help"):
        if getattr(options, wrong):
            given = options.name if wrong == "name" else f"--{wrong}"
            command.error(f"--all runs every experiment: leave out {given}")
    common = parser("--all", "")  # refuses here, once, what each of them would refuse
    if "--help" in arguments or "-h" in arguments:
        command.error("--all runs every experiment: leave out --help")
    common.parse_args(arguments)
    names()
    with _told_what_is_missing():
        runner = importlib.import_module("interop.experiments.runner")
    return runner.run_all(arguments)


def names() -> list[str]:
    """The experiments that there are."""
    if not FOLDER.is_dir():
        raise CommandError(
            "the experiments are not part of an installed package: run them in a checkout of torch-interop, "
            "where `make demo` prepares everything"
        )
    return sorted(path.parent.name for path in FOLDER.glob("*/run.py"))


def load(name: str, module: str = "run") -> ModuleType:
    """Import a module of the experiment `name`."""
    known = names()
    if name not in known:
        raise CommandError(f"there is no experiment {name!r}; there are: {', '.join(known)}", USAGE)
    for package, places in ((_PACKAGE, []), (f"{_PACKAGE}.{name}", [str(FOLDER / name)])):
        if package not in sys.modules:
            sys.modules[package] = ModuleType(package)
            sys.modules[package].__path__ = places
    with _told_what_is_missing():
        return importlib.import_module(f"{_PACKAGE}.{name}.{module}")


@contextmanager
def _told_what_is_missing() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("rich", "matplotlib", "psutil"):
            raise
        raise CommandError(
            f"the experiments need {missing}; run: pip install matplotlib psutil pybind11 rich"
        ) from error


class _ExperimentParser(Parser):
    def parse_args(self, args=None, namespace=None):
        options = super().parse_args(args, namespace)
        if options.quick and options.record:
            self.error("--record wants the whole run: leave --quick out")
        return options


def parser(name: str, description: str) -> Parser:
    """A parser with the options that every experiment has. Add the experiment's own to it."""
    result = _ExperimentParser(prog=f"python -m interop experiments {name}", description=description)
    result.add_argument("--quick", action="store_true", help="less of everything, to see that it works")
    result.add_argument(
        "--record", action="store_true", help="write the result into docs/experiments, to be committed, not into build"
    )
    result.add_argument(
        "--render",
        action="store_true",
        help="make plots and README.md again from what is recorded, and measure nothing",
    )
    return result


def _title(name: str) -> str:
    readme = FOLDER / name / "README.md"
    return readme.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") if readme.exists() else ""
