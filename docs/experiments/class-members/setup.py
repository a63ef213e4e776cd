"""Compiles the classes, in Cython and in C++; `harness/building.py` runs it."""

import sys

from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from experiments.harness.building import FLAGS
from interop.build import BuildExtension, Extension, cythonize

# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="class-members",
    ext_modules=[
        CppExtension("members_pybind11", ["members_pybind11.cpp"], extra_compile_args=FLAGS),
        *cythonize([Extension("members", ["members.pyx"], extra_compile_args=FLAGS)], build_dir=generated),
    ],
    cmdclass={"build_ext": BuildExtension},
)
