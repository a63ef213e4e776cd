"""What the commands of ``python -m interop`` share: errors that are one line, and an argument parser that uses them."""

import argparse
from typing import NoReturn

USAGE = 2
FAILED = 1


class CommandError(Exception):
    """Ends a command with a message of one line and an exit status: FAILED, or USAGE where the input was at fault."""

    def __init__(self, message: str, status: int = FAILED):
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that raises `CommandError` where argparse would print its usage and exit."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{"allow_abbrev": False} | options)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see: {self.prog} --help)", USAGE)


def positive_int(text: str) -> int:
    """The type of an argument that counts something."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return number
