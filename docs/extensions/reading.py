"""Adds what readers with a keyboard or a screen reader need, and leaves out styles that a page does not use."""

import re

from docutils import nodes
from sphinx.application import Sphinx

TWICE = re.compile(r'<(span|em) class="([\w -]+)"><span class="pre">([^<]*)</span></\1>')
BLANK = re.compile(r'<span class="w">(\s+)</span>')
TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
PART = re.compile(r"<(table|thead|tbody|tr|th|td)\b")
ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "th": "columnheader", "td": "cell"}


def with_roles(table: re.Match) -> str:
    """A table with pictures, whose parts say that they are parts of a table; other tables as they are.

    In a narrow window, site.css shows such a table as blocks, and browsers then forget that it is one.
    """
    if "<img" not in table[0]:
        return table[0]
    return PART.sub(lambda part: f'{part[0]} role="{ROLES[part[1]]}"', table[0])


def correct(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give the headings of the contents a level; keep the style sheet of notebooks to notebooks.

    The parameters of a long signature are a list without terms, which a screen reader cannot announce. Each word of a
    signature is in two elements, of which the inner one says nothing; without it the longest page is a twelfth shorter.
    Blanks in code have elements as well, which no reader sees.
    """
    contents = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = contents.replace('role="heading"', 'role="heading" aria-level="2"')
    if "body" in context:
        body = context["body"].replace("<dl>\n<dd>", '<dl role="presentation">\n<dd>')
        body = BLANK.sub(r"\1", TWICE.sub(r'<\1 class="\2">\3</\1>', body))
        context["body"] = TABLE.sub(with_roles, body)
    if not (page in app.env.all_docs and app.env.doc2path(page).suffix == ".ipynb"):
        context["css_files"] = [file for file in context["css_files"] if "mystnb" not in str(file.filename)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", correct, priority=900)  # after the theme, which makes the contents
    return {"parallel_read_safe": True, "parallel_write_safe": True}
