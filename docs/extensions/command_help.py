"""Puts what ``python -m interop COMMAND --help`` prints in the place of ``<!-- help of COMMAND -->`` in a page."""

import contextlib
import importlib
import io
import os
import re
from unittest.mock import patch

from sphinx.application import Sphinx

from interop.__main__ import COMMANDS, parser

MARK = re.compile(r"^<!-- help of (\w+) -->$", re.MULTILINE)


def text_of(command: str) -> str:
    """The help of a command, as on a terminal of 90 columns; that of `interop` lists the commands."""
    if command == "interop":
        return parser().format_help()
    printed = io.StringIO()
    main = importlib.import_module(COMMANDS[command][0]).main
    with patch.dict(os.environ, COLUMNS="90"), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main(["--help"])
    return printed.getvalue()


def _insert(app: Sphinx, page: str, source: list[str]) -> None:
    # Messages have the language "text", and their lines are folded; a help has columns.
    source[0] = MARK.sub(lambda mark: f"```none\n{text_of(mark[1]).rstrip()}\n```", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _insert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
