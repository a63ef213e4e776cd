"""Compiles the modules with the same flags; `harness/building.py` runs it."""

import sys

import numpy
from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from experiments.harness import building
from interop import get_include
from interop.build import BuildExtension, Extension, cythonize

# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]
options = {
    "include_dirs": [".", numpy.get_include(), get_include()],
    "extra_compile_args": [*building.FLAGS, "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION"],
}

setup(
    name="unpack",
    ext_modules=[
        CppExtension("unpack_cpp", ["unpack_cpp.cpp"], **options),
        *cythonize(
            [
                Extension(name, [f"{name}.pyx"], **options)
                for name in ("unpack_mirror", "unpack_header", "unpack_functions", "unpack_attributes")
            ],
            build_dir=generated,
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
