"""Generates the declarations of ATen for the installed torch.

The torch wheel ships torchgen and native_functions.yaml, from which torch's own headers were generated. This package
turns them into ``.pxd`` files and a C++ header. `surface` reads them, `types` maps each C++ type to Cython types,
`overloads` decides how to declare each function, `cpp` generates the header, and `write` writes the files.
"""
