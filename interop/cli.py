"""Shared by the commands of ``python -m interop``: one-line errors, and an argument parser that raises them."""

import argparse
import errno
import io
import os
import signal
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from interop.errors import Error

USAGE = 2
FAILED = 1
INTERRUPTED = 128 + signal.SIGINT  # as a shell reports a process that a signal ended
UNREAD = 128 + signal.SIGPIPE
UNAVAILABLE = 77  # the status of a skipped test in automake and Meson

STATUSES = {
    0: "done",
    FAILED: "the command failed, or the doctor found a problem",
    USAGE: "the arguments are wrong, and nothing was done",
    UNAVAILABLE: "this machine cannot run the experiment",
    INTERRUPTED: "interrupted by Ctrl-C",
    UNREAD: "the reader of the output has ended, such as `head` in `| head`",
    128 + signal.SIGTERM: "ended by SIGTERM",
}
"""The exit statuses of all commands, and what they mean."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def is_file(path: Path) -> bool:
    """As `Path.is_file`. From CPython 3.14 on, that one hides why the system does not accept a name."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise


class CommandError(Error):
    """Ends a command with a one-line message and an exit status: FAILED, or USAGE if the input is wrong."""

    def __init__(self, message: str, status: int = FAILED):
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that raises `CommandError` instead of printing its usage and exiting.

    Its help ends with `examples`, which map commands for a shell to their purposes.
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

    def print_help(self, file: Any = None) -> None:
        """Print the help. That of argparse ignores an error, so the status would be 0 on a full disk."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see: {self.prog} --help)", USAGE)


def run(command: Callable[[], int]) -> int:
    """Call `command` and return its exit status. If the reader of the output has gone, the status is that of SIGPIPE.

    So `... | head` ends quietly, as with other tools. SIGTERM ends the command in an orderly way, as an interrupt
    does, together with all processes that it has started.
    """
    signal.signal(signal.SIGTERM, _end)
    if sys.stdout is None:  # the process was started without a stdout
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  for as long as the process lives
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files have any bytes
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return UNREAD
    except UnicodeEncodeError as error:
        print(f"error: cannot write the output in {error.encoding}: {error.reason}: {error.object!a}", file=sys.stderr)
        return FAILED
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _drop_output()
        print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        return FAILED


def complete(parser: argparse.ArgumentParser) -> None:
    """If a shell requests completions, answer with the arguments of `parser`, and end the process.

    This needs argcomplete; without it there is no answer.
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
    """Discard further output. At exit Python flushes its buffers, and prints an error if it cannot."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def positive_int(text: str) -> int:
    """An argparse type for counts."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return number
