"""Compiles the class that keeps images; `harness/building.py` runs it."""

import sys

from setuptools import setup

from experiments import load
from interop.build import BuildExtension, Extension, cythonize

FLAGS = load("memoryview-transpose", "measure").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="memoryview-transpose",
    ext_modules=cythonize([Extension("images", ["images.pyx"], extra_compile_args=FLAGS)], build_dir=generated),
    cmdclass={"build_ext": BuildExtension},
)
