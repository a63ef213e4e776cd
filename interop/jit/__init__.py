"""Write a module, see it run: `load` and `load_inline` compile Cython when the program runs, and import it.

What was compiled is kept, named by a hash of all that it was made from, so that the next program finds it.
"""

from interop.jit.errors import BuildError, Diagnostic
from interop.jit.loading import load, load_inline

__all__ = ["BuildError", "Diagnostic", "load", "load_inline"]
