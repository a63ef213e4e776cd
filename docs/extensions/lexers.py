"""Colours for the languages of our blocks that Pygments does not know by these names, or colours in another way."""

from pygments.lexers import CythonLexer
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    for name in ("ipython", "ipython3"):  # our cells are Cython, or Python, which is a part of it
        app.add_lexer(name, CythonLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
