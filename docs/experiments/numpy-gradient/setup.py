"""Compiles the nodes in Cython; `harness/building.py` runs it."""

import sys

from setuptools import setup

from experiments.harness.building import FLAGS
from interop.build import BuildExtension, Extension, cythonize

# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="numpy-gradient",
    ext_modules=cythonize(
        [Extension("solve_cython", ["solve_cython.pyx"], extra_compile_args=FLAGS)], build_dir=generated
    ),
    cmdclass={"build_ext": BuildExtension},
)
