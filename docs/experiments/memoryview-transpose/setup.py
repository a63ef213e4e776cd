"""Compiles the class that keeps images; `interop.experiments.building` runs it."""

import sys

from setuptools import setup

from interop.build import BuildExtension, Extension, cythonize
from interop.experiments import load

FLAGS = load("memoryview-transpose", "measure").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="memoryview-transpose",
    ext_modules=cythonize([Extension("images", ["images.pyx"], extra_compile_args=FLAGS)], build_dir=generated),
    cmdclass={"build_ext": BuildExtension},
)
