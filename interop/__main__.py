# PYTHON_ARGCOMPLETE_OK
"""The command line: ``python -m interop COMMAND``."""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping

from interop.cli import FAILED, INTERRUPTED, STATUSES, CommandError, Parser, run
from interop.config import installed
from interop.overview import overview

# Each command is a module with a function main(arguments). The module is imported when the command runs.
COMMANDS = {
    "config": ("interop.config", "print compiler and linker flags for other build systems"),
    "cythonize": ("interop.cython.cythonize_command", "translate one source to C++, for other build systems"),
    "cache": ("interop.cache", "show what is cached on disk, or remove it"),
    "doctor": ("interop.doctor", "check what is installed, whether it fits together, and what is wrong with a module"),
    "new": ("interop.new", "write a small project that is ready to build, test and install"),
    "experiments": ("interop.experiments", "run an experiment of docs/experiments, in a checkout, or list them"),
}

WITHOUT_CHECK = {"config", "cythonize", "doctor", "new"}
"""Commands that need no import of torch. They check themselves whether this package was built for it, if it matters."""


def main(arguments: list[str]) -> int:
    """Run the command that `arguments` name first. Return its main()'s result as the exit status, with 0 for None."""
    try:
        check_folder()
        if completed := completed_command():
            return importlib.import_module(COMMANDS[completed][0]).main([]) or 0
        command = parser()
        options = command.parse_args(arguments)
        if options.version:
            version, torch = installed()
            print(f"torch-interop {version}, for torch {torch.version}")
            return 0
        if not options.command:
            text, ready = overview()
            print(f"{text}\n\ncommands, each with examples in its --help:\n{_list(summaries())}")
            return 0 if ready else FAILED
        if options.command not in COMMANDS:
            command.error(f"there is no command {options.command!r}; the commands are: {', '.join(COMMANDS)}")
        if options.command not in WITHOUT_CHECK and not {"-h", "--help"}.intersection(options.arguments):
            check()
        return importlib.import_module(COMMANDS[options.command][0]).main(options.arguments) or 0
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    except OSError as error:  # a file that an argument or a variable of the environment names
        named = [os.fsdecode(one) for one in (error.filename, error.filename2) if isinstance(one, (str, bytes))]
        if not named:
            raise
        print(f"error: {error.strerror}: {', '.join(map(repr, named))}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def check_folder() -> None:
    """Raise `CommandError` if the current folder was removed, which some functions of Python do not explain."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise CommandError("the current folder was removed; change to another one") from error


def completed_command() -> str | None:
    """Return the command whose arguments argcomplete must complete, or None. Tell argcomplete where they begin."""
    if "_ARGCOMPLETE" not in os.environ:
        return None
    try:
        begin = int(os.environ["_ARGCOMPLETE"])
        *words, _ = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])].split(" ")  # the last is still being typed
    except (KeyError, ValueError):  # not of a shell
        del os.environ["_ARGCOMPLETE"]
        return None
    word = next(iter([word for word in words if word][begin : begin + 1]), "")
    if word not in COMMANDS:
        return None
    os.environ["_ARGCOMPLETE"] = str(begin + 1)
    return word


def check() -> None:
    """Import torch and check that this package was built for it. interop/__init__.py leaves this to commands."""
    try:
        importlib.import_module("interop._compiled_half")
    except ImportError as error:
        raise CommandError(f"{error} See also: python -m interop doctor") from error


def summaries() -> dict[str, str]:
    """A one-line summary of each command."""
    return {name: summary for name, (_, summary) in COMMANDS.items()}


def parser() -> Parser:
    """A parser of the command's name. The command itself parses its arguments."""
    result = Parser(
        prog="python -m interop",
        usage="%(prog)s COMMAND [ARGUMENTS...]",
        description=f"Use PyTorch tensors from Cython.\n\ncommands:\n{_list(summaries())}",
        epilog=f"exit status:\n{_list(STATUSES)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        examples={
            "python -m interop new cells": "begin a project",
            "python -m interop doctor": "find problems and their fixes",
            "python -m interop COMMAND --help": "the arguments of a command, with examples",
        },
    )
    result.add_argument("--version", action="store_true", help="show the version, and that of torch")
    name = result.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    name.completer = lambda **_: COMMANDS  # type: ignore[attr-defined]  # argcomplete looks for it there
    rest = result.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    rest.completer = lambda **_: ()  # type: ignore[attr-defined]  # the command itself completes these
    return result


def _list(texts: Mapping[str, str] | Mapping[int, str]) -> str:
    return "\n".join(f"  {name:<14}{text}" for name, text in texts.items())


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
