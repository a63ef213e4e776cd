"""Compiles the functions with typed memoryviews; `harness/building.py` runs it."""

import sys

from setuptools import setup

from experiments import load
from interop.build import BuildExtension, Extension, cythonize

FLAGS = load("bridges", "measure").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="bridges",
    ext_modules=cythonize(
        [Extension("bridges_typed", ["bridges_typed.pyx"], extra_compile_args=FLAGS)], build_dir=generated
    ),
    cmdclass={"build_ext": BuildExtension},
)
