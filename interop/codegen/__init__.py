"""Writes the declarations of ATen that depend on the installed torch.

torchgen and native_functions.yaml ship inside the torch wheel and say what torch's own headers were generated from.
Here they become ``.pxd`` files and a C++ header: `surface` reads them, `types` spells C++ types in Cython, `calls`
lists the ways to call each, and `write` lays the files out. `select` chooses what one build needs of the result.
"""
