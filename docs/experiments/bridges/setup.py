"""Compiles the functions with typed memoryviews, and the cheapest ones; `harness/building.py` runs it."""

import sys

import numpy
from setuptools import setup

from experiments import CHECKOUT, load
from interop.build import BuildExtension, Extension, cythonize

FLAGS = load("bridges", "measure").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="bridges",
    ext_modules=cythonize(
        [
            Extension("bridges_typed", ["bridges_typed.pyx"], extra_compile_args=FLAGS),
            Extension(
                "bridges_cheapest",
                ["bridges_cheapest.pyx"],
                extra_compile_args=FLAGS,
                include_dirs=[".", str(CHECKOUT / "csrc"), numpy.get_include()],
                depends=["cheapest.h"],
            ),
        ],
        build_dir=generated,
    ),
    cmdclass={"build_ext": BuildExtension},
)
