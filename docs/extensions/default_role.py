"""Makes `name` in a docstring a link where there is such a name, and code where there is none: an argument, say.

Roles that were meant as a link, as in :class:`name`, still have to lead somewhere.
"""

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def _as_code(
    app: Sphinx, env: BuildEnvironment, reference: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """What is shown in the place of a reference that nothing was found for; None is a warning."""
    return content if reference.get("reftype") == "obj" else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.config.default_role = "py:obj"
    app.connect("missing-reference", _as_code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
