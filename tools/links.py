"""Finds the links of pages to files and headings that are not there: ``python tools/links.py PAGE...``.

The pages are in Markdown or are notebooks. Their links are relative paths, so that they work on GitHub too. Links by
reference, [a][b], are not read.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"""\]\(([^()\s]+)(?:\s+"[^"]*")?\)|<img\s[^>]*?src="([^"]+)\"""")
BLOCK = r"^```.*?^```$"
INLINE = r"`[^`\n]*`"


def cells(notebook: Path) -> list[dict]:
    """The cells of a notebook."""
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def markdown(page: Path, without: str) -> str:
    """The text of a page, or of the Markdown cells of a notebook, without the code that the pattern finds."""
    if page.suffix == ".ipynb":
        text = "\n\n".join("".join(cell["source"]) for cell in cells(page) if cell["cell_type"] == "markdown")
    else:
        text = page.read_text(encoding="utf-8")
    return re.sub(without, "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub, like MyST, gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", markdown(page, BLOCK), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> Iterator[str]:
    """What is wrong with the links and pictures of a page."""
    for target in map("".join, LINK.findall(markdown(page, f"{BLOCK}|{INLINE}"))):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists():
            yield f"links to {target}, which is not there"
        elif anchor and anchor not in anchors(file):
            yield f"links to {target}; {file.name} has {', '.join(sorted(anchors(file)))}"


def main(pages: list[str]) -> int:
    findings = [f"{page}: {finding}" for page in pages for finding in broken(Path(page))]
    for finding in findings:
        print(finding)
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
