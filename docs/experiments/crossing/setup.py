"""Compiles the functions of both kinds with the same flags; `interop.experiments.building` runs it."""

import sys

from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from interop.build import BuildExtension, Extension, cythonize
from interop.experiments import load

FLAGS = load("crossing", "measure").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="crossing",
    ext_modules=[
        CppExtension("crossing_pybind11", ["crossing_pybind11.cpp"], extra_compile_args=FLAGS),
        *cythonize(
            [Extension("crossing_cython", ["crossing_cython.pyx"], extra_compile_args=FLAGS)], build_dir=generated
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
