"""Puts pages first among the results of the site's search, for words that too many pages have, or other words.

The search gives all pages with a word the same rank, unless it is in a heading or an entry of the index. So the search
does not see the headings that all experiments have, such as "Setup".
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

FIRST = {
    "building-guide": ("setup.py",),
    "cimport-guide": ("GIL", "nogil", "dtype"),
    "comparison": ("speed", "performance", "benchmark"),
    "jit-guide": ("load_inline",),
    "kernels-guide": ("dtype", "threads"),
    "operators-guide": ("torch.compile", "operators", "autocast"),
    "support": ("Windows", "macOS"),
}
IN_ALL = {"Question", "Setup", "Method", "Results", "What to do with it", "What it does not show", "Run it"}
"""The headings of experiments that the search does not see."""


class Entries(SphinxTransform):
    """Adds the words to the index, as main entries of the page, and hides headings from the search."""

    default_priority = 500

    def apply(self, **options: object) -> None:
        words = FIRST.get(self.env.docname, ())
        if words:
            section = next(iter(self.document.findall(nodes.section)))
            entries = [("single", word, section["ids"][0], "main", None) for word in words]
            section.insert(1, addnodes.index(entries=entries))  # behind the title
        if self.env.docname.startswith("experiments/"):
            for title in self.document.findall(nodes.title):
                if title.astext() in IN_ALL:
                    title["classes"].append("no-search")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Entries)
    # Sphinx forgets the entries of pages that are up to date: what it kept of a first build has none yet.
    app.connect("env-get-outdated", lambda *_: list(FIRST))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
