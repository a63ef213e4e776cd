"""Build Cython modules that use torch's tensors, on top of `torch.utils.cpp_extension`.

A project's whole ``setup.py``::

    from setuptools import setup
    from interop.build import BuildExtension, Extension

    setup(name="cells", ext_modules=[Extension("cells", ["cells.pyx"])], cmdclass={"build_ext": BuildExtension})

Build it with ``pip install --no-build-isolation .``: isolated, pip sees neither the installed torch nor this package.
"""

from interop.build.command import BuildExtension
from interop.build.cythonizer import DIRECTIVES, cythonize
from interop.build.extension import Extension
from interop.build.flags import CXX_FLAGS, openmp_flags

__all__ = ["CXX_FLAGS", "DIRECTIVES", "BuildExtension", "Extension", "cythonize", "openmp_flags"]
