"""Compiles the modules with the same flags; `harness/building.py` runs it."""

import sys

from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from experiments.harness import building
from interop.build import BuildExtension, Extension, cythonize

# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]
flags = {"extra_compile_args": building.FLAGS}

setup(
    name="gil",
    ext_modules=[
        CppExtension("gil_cpp", ["gil_cpp.cpp"], **flags),
        *cythonize([Extension("gil_cython", ["gil_cython.pyx"], **flags)], build_dir=generated),
    ],
    cmdclass={"build_ext": BuildExtension},
)
