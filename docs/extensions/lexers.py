"""Colours for the languages of our blocks that Pygments does not know by these names."""

from pygments.lexers import CythonLexer
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_lexer("ipython", CythonLexer)  # IPython has a lexer, and need not be installed; our cells are Cython
    return {"parallel_read_safe": True, "parallel_write_safe": True}
