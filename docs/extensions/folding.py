"""Lets paths and long names in tables fold behind a slash, an underscore or ::, so that tables fit on small screens."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

LONG = 16
"""Characters; what is shorter stays in one piece."""


class Fold(SphinxPostTransform):
    """Puts an invisible place to fold into the code of table cells."""

    default_priority = 900
    formats = ("html",)

    def run(self, **options: object) -> None:
        for entry in self.document.findall(nodes.entry):
            for literal in list(entry.findall(nodes.literal)):
                parts = re.findall(r".+?(?:::|[/_](?=\w)|$)", literal.astext())
                if len(parts) > 1 and len(literal.astext()) > LONG:
                    literal.children.clear()
                    for part in parts:
                        literal += [nodes.Text(part), nodes.raw("", "<wbr>", format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(Fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
