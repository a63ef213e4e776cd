"""Write a module, see it run: `load` and `load_inline` compile Cython when the program runs, and import it.

What was compiled is kept, named by a hash of all its inputs, so that the next program finds it.
"""

from interop.jit.diagnostics import BuildError, Diagnostic
from interop.jit.loading import load, load_inline

__all__ = ["BuildError", "Diagnostic", "load", "load_inline"]
