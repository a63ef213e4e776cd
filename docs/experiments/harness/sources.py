"""Tells code from prose in a source file: comments and docstrings are prose."""

import re

__all__ = ["code", "prose"]

_LIKE_PYTHON = re.compile(
    r"""(?P<prose>^[ \t]*[rRuU]?(?P<doc>\"{3}|'{3})(?:\\.|.)*?(?P=doc)|\#[^\n]*)"""
    r"""|(?P<quotes>\"{3}|'{3})(?:\\.|.)*?(?P=quotes)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.MULTILINE,
)
_LIKE_C = re.compile(
    r"""(?P<prose>//[^\n]*|/\*.*?\*/)"""
    r"""|R"(?P<raw>\w*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
_SYNTAX = dict.fromkeys((".h", ".cpp", ".cu", ".cuh", ".c", ".js", ".css"), _LIKE_C)
_SYNTAX |= dict.fromkeys((".py", ".pyx", ".pxd", ".pxi", ".toml", ".sh"), _LIKE_PYTHON)


def prose(text: str, suffix: str, *, strings: bool = False) -> str:
    """The comments and docstrings of a source file whose name ends in `suffix`, in their lines; the rest is blank.

    With `strings`, all other strings count as well. A file of another kind, such as a page, is all prose. A docstring
    is a string in three quotes that begins a line.
    """
    if suffix not in _SYNTAX:
        return text
    result, end = [], 0
    for found in _SYNTAX[suffix].finditer(text):
        if found["prose"] or strings:
            result += [_blank(text[end : found.start()]), found[0]]
            end = found.end()
    return "".join([*result, _blank(text[end:])])


def code(text: str, suffix: str) -> list[str]:
    """The lines of a source file that are not prose; a file of another kind is all code."""
    if suffix in _SYNTAX:
        text = _SYNTAX[suffix].sub(lambda found: "" if found["prose"] else found[0], text)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
