"""Everything that reads, checks, changes or runs Cython's compiler. No other part of the package imports `Cython`.

`translate` turns one ``.pyx`` into C++. `cythonize` uses it for the extensions of a setup.py, `command` for other build
systems, and `interop.jit` for modules that are compiled when a program runs.
"""
