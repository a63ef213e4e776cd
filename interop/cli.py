"""What the commands of ``python -m interop`` share: errors that are one line, and an argument parser that uses them."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from interop.errors import Error

USAGE = 2
FAILED = 1
INTERRUPTED = 128 + signal.SIGINT  # as a shell reports a process that a signal has ended
UNREAD = 128 + signal.SIGPIPE
UNAVAILABLE = 77  # what automake's and Meson's tests skip with

STATUSES = {
    0: "done",
    FAILED: "it failed, or the doctor found a problem",
    USAGE: "the arguments are wrong, and nothing was done",
    UNAVAILABLE: "an experiment that this machine cannot run",
    INTERRUPTED: "interrupted by Ctrl-C",
    UNREAD: "nobody reads the output any more, as behind `| head`",
    128 + signal.SIGTERM: "ended by SIGTERM",
}
"""The exit statuses of all commands, and what they mean."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class CommandError(Error):
    """Ends a command with a message of one line and an exit status: FAILED, or USAGE where the input was at fault."""

    def __init__(self, message: str, status: int = FAILED):
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that raises `CommandError` where argparse would print its usage and exit.

    Its help ends with `examples`, which are commands for a shell, and what each is for.
    """

    def __init__(self, *arguments: Any, examples: Mapping[str, str] | None = None, **options: Any):
        super().__init__(*arguments, **{"allow_abbrev": False} | options)
        self.examples = examples or {}

    def format_help(self) -> str:
        lines = [f"  # {purpose}\n  {command}\n" for command, purpose in self.examples.items()]
        return super().format_help() + "".join(["\nexamples:\n", *lines] if lines else [])

    def parse_args(self, *arguments: Any, **options: Any) -> Any:
        complete(self)
        return super().parse_args(*arguments, **options)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see: {self.prog} --help)", USAGE)


def run(command: Callable[[], int]) -> int:
    """Call `command`, and return its exit status; that of a process that ends by SIGPIPE where nobody reads its output.

    So `... | head` ends quietly, as with other tools. SIGTERM ends it as an interrupt does, in order: no process that
    it has started stays behind.
    """
    signal.signal(signal.SIGTERM, _end)
    if sys.stdout is None:  # as where the process was started without one
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  for as long as the process lives
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return UNREAD
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _drop_output()
        print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        return FAILED


def complete(parser: argparse.ArgumentParser) -> None:
    """Where a shell asks what could come next, answer with what `parser` takes, and end the process.

    That needs argcomplete; without it there is no answer.
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        import argcomplete
    except ImportError:
        sys.exit(FAILED)
    argcomplete.autocomplete(parser, always_complete_options="long")


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _drop_output() -> None:
    """Python writes what is still in its buffers when it exits, and complains where it cannot."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def positive_int(text: str) -> int:
    """The type of an argument that counts something."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return number
