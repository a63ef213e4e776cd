"""Compiles the search twice: as it usually is, with plain Cython, NumPy and OpenMP, and on tensors."""

import sys

import numpy
from Cython.Build import cythonize as plain_cythonize
from setuptools import Extension as PlainExtension
from setuptools import setup

from experiments import load
from interop.build import BuildExtension, Extension, cythonize

FLAGS = load("monotonic-alignment", "ways").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

usual = PlainExtension(
    "search_usual",
    ["search_usual.pyx"],
    include_dirs=[numpy.get_include()],
    extra_compile_args=[*FLAGS, "-fopenmp"],
    extra_link_args=["-fopenmp"],
)
ours = Extension("search_cython", ["search_cython.pyx"], include_dirs=["."], extra_compile_args=FLAGS)

# One after the other: torch's build command gives C to the C++ compiler, and this is about the usual build.
setup(name="usual", ext_modules=plain_cythonize(usual, build_dir=generated, language_level=3))
setup(name="ours", ext_modules=cythonize(ours, build_dir=generated), cmdclass={"build_ext": BuildExtension})
