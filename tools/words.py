"""Finds the words that docs/style.md advises against: ``python tools/words.py FILE...``.

It reads pages, the comments and docstrings of sources, and the strings of `interop` and `csrc`, which are messages. The
words are those of the page's first table, also with endings. It does not read code between backticks, or one word in
quotes.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from experiments.harness import sources  # noqa: E402

STYLE = ROOT / "docs" / "style.md"
TABLE = re.compile(r"<!-- words: .*?<!-- end of words -->", re.DOTALL)
CODE = (
    TABLE,
    re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE),
    re.compile(r"""`[^`\n]*`|(["'])\w+\1"""),
)
"""What is not read."""
BETWEEN = r"[\s#/*\"]+"
"""What is between two words of a comment or of a message, also across lines."""
MESSAGES = ("csrc", "interop")
"""The folders whose strings are read: users see them."""


def words() -> dict[str, str]:
    """What to write instead, by the words of the table."""
    (table,) = TABLE.findall(STYLE.read_text(encoding="utf-8"))
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    return {word: instead for listed, instead in rows for word in listed.split(", ")}


def pattern(phrase: str) -> str:
    """A regular expression for a phrase, whose words may have endings."""
    found = [
        rf"{word[:-1]}(?:e|es|ed|ing|al)" if word[-1] == "e" else rf"{word}(?:s|ed|ing)?" for word in phrase.split()
    ]
    return rf"\b{BETWEEN.join(found)}\b"


def find(path: Path, looked_up: dict[str, str]) -> list[tuple[int, str, str]]:
    """The line, the words and what to write instead, for each place in a file."""
    text = sources.prose(path.read_text(encoding="utf-8"), path.suffix, strings=path.parts[0] in MESSAGES)
    for code in CODE:
        text = code.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return sorted(
        (text.count("\n", 0, found.start()) + 1, " ".join(re.split(BETWEEN, found[0])), instead)
        for phrase, instead in looked_up.items()
        for found in re.finditer(pattern(phrase), text, re.IGNORECASE)
    )


def main(files: list[str]) -> int:
    looked_up = words()
    places = [(file, *place) for file in files for place in find(Path(file), looked_up)]
    for file, line, word, instead in places:
        print(f"{file}:{line}: {word!r}: write {instead}")
    return bool(places)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
