"""Puts pages first among the results of the site's search, for words that too many pages have.

The search gives all pages with a word the same rank, unless it is in a heading or an entry of the index.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

FIRST = {
    "cimport-guide": ("GIL", "nogil", "dtype"),
    "kernels-guide": ("dtype", "threads"),
    "operators-guide": ("torch.compile", "operators"),
}


class Entries(SphinxTransform):
    """Adds the words to the index, as main entries of the page."""

    default_priority = 500

    def apply(self, **options: object) -> None:
        words = FIRST.get(self.env.docname, ())
        if words:
            section = next(iter(self.document.findall(nodes.section)))
            entries = [("single", word, section["ids"][0], "main", None) for word in words]
            section.insert(1, addnodes.index(entries=entries))  # behind the title


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Entries)
    # Sphinx forgets the entries of pages that are up to date: what it kept of a first build has none yet.
    app.connect("env-get-outdated", lambda *_: list(FIRST))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
