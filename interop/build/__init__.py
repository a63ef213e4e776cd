"""Build Cython modules that use torch's tensors, on top of `torch.utils.cpp_extension`.

A project's whole ``setup.py``::

    from setuptools import setup
    from interop.build import BuildExtension, Extension

    setup(name="cells", ext_modules=[Extension("cells", ["cells.pyx"])], cmdclass={"build_ext": BuildExtension})

Build it with ``pip install --no-build-isolation .``, because an isolated build sees neither the installed torch nor
this package.
"""

from interop.garbage_collection import without_collections

with without_collections():  # they import Cython's compiler and setuptools; pip does so three times in an install
    from interop.build.build_ext import BuildExtension
    from interop.build.extension import Extension, cythonize
    from interop.build.flags import CXX_FLAGS, openmp_flags
    from interop.cython.translate import DIRECTIVES, TranslationError

__all__ = ["CXX_FLAGS", "DIRECTIVES", "BuildExtension", "Extension", "TranslationError", "cythonize", "openmp_flags"]
