"""Writes the declarations of ATen that depend on the installed torch.

torchgen and native_functions.yaml ship inside the torch wheel and say what torch's own headers were generated from.
Here they become ``.pxd`` files and a C++ header: `surface` reads them, `types` has the Cython types of each C++ type,
`overloads` decides what Cython is told of each function, `cpp` writes the header and `write` the files.
"""
