"""`load` and `load_inline` compile Cython modules at run time, and import them.

Compiled modules are cached under a hash of all their inputs, so that the next program finds them.
"""

from interop.jit.diagnostics import BuildError, Diagnostic
from interop.jit.loading import load, load_inline

__all__ = ["BuildError", "Diagnostic", "load", "load_inline"]
