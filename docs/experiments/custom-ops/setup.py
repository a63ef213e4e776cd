"""Compiles the operators and functions of each kind with the same flags; `harness/building.py` runs it."""

import sys

from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from experiments.harness.building import FLAGS
from interop.build import BuildExtension, Extension, cythonize

# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="custom-ops",
    ext_modules=[
        # No Python module: torch.ops.load_library loads it.
        CppExtension("ops_cpp", ["ops_cpp.cpp"], extra_compile_args=FLAGS),
        CppExtension("function_pybind11", ["function_pybind11.cpp"], extra_compile_args=FLAGS),
        *cythonize([Extension("ops_cython", ["ops_cython.pyx"], extra_compile_args=FLAGS)], build_dir=generated),
    ],
    cmdclass={"build_ext": BuildExtension},
)
