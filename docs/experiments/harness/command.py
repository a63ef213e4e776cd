"""The command line: ``python -m interop experiments NAME``, for every docs/experiments/NAME/run.py; see `driver`.

``--all`` runs them one after the other: see `runner`.
"""

import argparse
import json

from experiments import FOLDER, names
from interop.cli import Parser, complete


def main(arguments: list[str]) -> int | None:
    """Run ``python -m interop experiments`` with `arguments`, and return the exit status; None for 0."""
    ours, theirs = arguments, []
    if "--" in arguments:
        ours, theirs = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    command = Parser(
        prog="python -m interop experiments",
        usage="%(prog)s [NAME | --all | --list [--json]] [--quick] [--record] [--render] [[--] ARGUMENTS...]",
        description="Run an experiment, or all of them, or list them. --quick is a short run, which shows whether it "
        "works here. --record writes the results, the figures of its page and the plot. --render writes page and plot "
        "out of the recorded results. NAME --help shows all arguments of one.",
        add_help=False,
        examples={
            "python -m interop experiments": "list them",
            "python -m interop experiments crossing --quick": "does it run here? a minute or two",
            "python -m interop experiments crossing": "the whole run, on a machine that has nothing else to do",
            "python -m interop experiments lltm --help": "what can be set in that one",
        },
    )
    name = command.add_argument("name", metavar="NAME", nargs="?", help="which experiment to run")
    name.completer = lambda **_: names()  # where argcomplete looks for it
    command.add_argument(
        "--all", action="store_true", help="run them all, each in its own process; the exit status is 1 if one failed"
    )
    command.add_argument("--list", action="store_true", help="list the experiments")
    command.add_argument("--json", action="store_true", help="list them for programs")
    command.add_argument("-h", "--help", action="store_true", help="show this, or the arguments of NAME")
    complete(command)
    options, unknown = command.parse_known_args(ours)
    if options.json and (options.name or options.all):
        command.error("--json is for --list; an experiment's --record writes its results as JSON")
    if options.all:
        return _run_all(command, options, [*unknown, *theirs])
    if options.help and not options.name:
        command.print_help()
    elif options.list or not options.name:
        if unknown:
            command.error(f"unrecognized arguments: {' '.join(unknown)}")
        titles = {name: _title(name) for name in names()}
        if options.json:
            print(json.dumps([{"name": name, "title": title} for name, title in titles.items()], indent=1))
        else:
            print("\n".join(f"{name:<22}{title}" for name, title in titles.items()))
    else:
        from experiments.harness import driver  # here, because a list of the experiments needs none of it

        driver.run(options.name, [*(["--help"] if options.help else []), *unknown, *theirs])
    return None


def _run_all(command: Parser, options: argparse.Namespace, arguments: list[str]) -> int:
    from experiments.harness import driver, runner

    for wrong in ("name", "list", "help"):
        if getattr(options, wrong):
            given = options.name if wrong == "name" else f"--{wrong}"
            command.error(f"--all runs every experiment: leave out {given}")
    if "--help" in arguments or "-h" in arguments:
        command.error("--all runs every experiment: leave out --help")
    driver.parser("--all", "").parse_args(arguments)  # rejects here, once, what each of them would reject
    return runner.run_all(arguments)


def _title(name: str) -> str:
    readme = FOLDER / name / "README.md"
    return readme.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") if readme.exists() else ""
