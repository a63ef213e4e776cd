"""The code blocks of a documentation page, for the tests that run them."""

import re
from dataclasses import dataclass

from conftest import TESTS, load_script

ROOT = TESTS.parent
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[^`\n]*)$")
_NOTE = re.compile(r"^ *<!-- (.*) -->$")

cells = load_script(ROOT / "tools" / "links.py").cells
"""Returns the cells of a notebook."""


@dataclass(frozen=True)
class Block:
    """A fenced block, with the comment in the line above it, which says how a test uses it."""

    page: str
    line: int
    language: str
    note: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}, {self.language or 'no language'}"


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page, without Sphinx directives, ```{name}. `page` is relative to the checkout."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    found, start = [], None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if start is None:
            if fence:
                start, opened = number, fence
        elif fence and fence["fence"].startswith(opened["fence"]) and not fence["language"].strip():
            language = opened["language"].strip()
            note = _NOTE.match(lines[start - 1]) if start else None
            code = "".join(f"{text.removeprefix(opened['indent'])}\n" for text in lines[start + 1 : number])
            if not language.startswith("{"):
                found.append(Block(page, start + 1, language, note[1] if note else "", code))
            start = None
    assert start is None, f"{page}:{start + 1}: this block does not end"
    return found


def of(page: str, language: str) -> list[str]:
    """The blocks of one language."""
    return [block.code for block in blocks(page) if block.language == language]


def write_files(page: str, folder) -> None:
    """Write the blocks with the note ``file: NAME`` into `folder`."""
    for block in blocks(page):
        if block.note.startswith("file: "):
            path = folder / block.note.removeprefix("file: ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code, encoding="utf-8")
