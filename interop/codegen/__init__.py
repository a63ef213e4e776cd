"""Writes the declarations of ATen that depend on the installed torch.

torchgen and native_functions.yaml ship inside the torch wheel and say what torch's own headers were generated from.
Here they become ``.pxd`` files: `surface` reads them, `types` spells C++ types in Cython, `write` lays the files out.
"""

from interop.codegen.write import COMMAND, generate

__all__ = ["COMMAND", "generate"]
