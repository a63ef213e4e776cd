"""The command line: ``python -m interop COMMAND``."""

import argparse
import importlib
import sys

from interop.cli import CommandError, Parser, run

# Each command is a module with a function main(arguments), imported when it is called.
COMMANDS = {
    "config": ("interop.config", "print what other build systems compile and link modules with"),
    "cythonize": ("interop.cython.command", "translate one source to C++, for other build systems"),
    "cache": ("interop.jit.command", "say what is kept on disk, or remove it"),
    "doctor": ("interop.doctor", "say what is installed, whether it fits together, and what is wrong with a module"),
    "new": ("interop.new", "write a small project that builds, tests and installs as it is"),
    "experiments": ("interop.experiments", "run an experiment of docs/experiments, or list them"),
}

WITHOUT_CHECK = {"config", "doctor", "new"}
"""Those for which it is not checked that this package was built for the running torch, and torch is not imported."""


def main(arguments: list[str]) -> int:
    """Run the command that `arguments` begin with, and return the exit status: what its main() returns, 0 for None."""
    try:
        command = parser()
        options = command.parse_args(arguments)
        if options.command not in COMMANDS:
            wrong = f"there is no command {options.command!r}" if options.command else "a command is missing"
            command.error(f"{wrong}; there are: {', '.join(COMMANDS)}")
        if options.command not in WITHOUT_CHECK:
            check()
        return importlib.import_module(COMMANDS[options.command][0]).main(options.arguments) or 0
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130  # as a shell reports a process that ended by SIGINT


def check() -> None:
    """Import torch, and make sure that this package was built for it, which interop/__init__.py leaves to commands."""
    try:
        importlib.import_module("interop._check")
    except ImportError as error:
        raise CommandError(f"{error} See also: python -m interop doctor") from error


def parser() -> Parser:
    """The parser of the command's name; what comes after it is the command's own to parse."""
    commands = "\n".join(f"  {name:<14}{summary}" for name, (_, summary) in COMMANDS.items())
    result = Parser(
        prog="python -m interop",
        usage="%(prog)s COMMAND [ARGUMENTS...]",
        description=f"Use PyTorch tensors from Cython.\n\ncommands:\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    result.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return result


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
