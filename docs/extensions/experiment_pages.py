"""Lists the experiments in the place of the mark in docs/experiments/index.md.

What stands there is taken from each README.md and its results, so a new experiment is in the list by being there.
"""

import json
import re
from pathlib import Path

from sphinx.application import Sphinx

MARK = "<!-- experiments: the site lists them here -->"
ENOUGH = 240
"""Characters of an experiment's findings; its page has all of them."""

RESULTS = re.compile(r"<!-- results: .*? -->(.*?)<!-- end of results -->", re.DOTALL)


def section(readme: str, heading: str) -> str:
    """The text below a heading of the second level, up to the next one."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", readme, re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def findings(readme: str) -> str:
    """What the results say in sentences, the first few: they stand behind tables and plots."""
    found = RESULTS.search(readme)
    paragraphs = []
    for paragraph in reversed(found[1].strip().split("\n\n") if found else []):
        if paragraph.startswith(("|", "!", "#", "<", "-", "```")) or paragraph.endswith(":"):
            break
        paragraphs.insert(0, " ".join(paragraph.split()))
    told = ""
    for sentence in re.split(r"(?<=\.)\s+(?=[A-Z])", " ".join(paragraphs)):
        if told and len(told) + len(sentence) > ENOUGH:
            break
        told = f"{told} {sentence}".strip()
    return told


def latest(folder: Path) -> str:
    """When, where and with what the newest of an experiment's results was measured."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in (folder / "results").glob("*.json"))
    results = [result for result in found if {"date", "machine", "versions"} <= set(result)]
    if not results:
        return "Nothing is recorded yet."
    newest = max(results, key=lambda result: result["date"])
    machine, versions = newest["machine"], newest["versions"]
    return f"Latest results: {newest['date']}, {machine['cpu']}, {machine['cores']} cores, torch {versions['torch']}."


def entry(readme: Path) -> str:
    """What the list says of one experiment."""
    text, name = readme.read_text(encoding="utf-8"), readme.parent.name
    title = text.partition("\n")[0].removeprefix("# ")
    parts = [f"## [{title}]({name}/README.md)", section(text, "Question"), f"*{latest(readme.parent)}*"]
    return "\n\n".join([*parts, findings(text), f"Run it: `python -m interop experiments {name}`"])


def _insert(app: Sphinx, page: str, source: list[str]) -> None:
    if MARK in source[0]:
        readmes = sorted((Path(app.srcdir) / page).parent.glob("*/README.md"))
        for readme in readmes:
            app.env.note_dependency(str(readme))
        source[0] = source[0].replace(MARK, "\n\n".join(map(entry, readmes)))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _insert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
