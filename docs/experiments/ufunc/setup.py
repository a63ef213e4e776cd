"""Compiles both modules with the flags of `interop.build`; `harness/building.py` runs it."""

import sys

import numpy
from Cython.Build import cythonize as cython_cythonize
from setuptools import Extension as PlainExtension
from setuptools import setup

from experiments import load
from interop.build import BuildExtension, Extension, cythonize

FLAGS = load("ufunc", "measure").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

setup(
    name="ufunc",
    ext_modules=[
        *cythonize([Extension("ufunc_cython", ["ufunc_cython.pyx"], extra_compile_args=FLAGS)], build_dir=generated),
        *cython_cythonize(
            [
                PlainExtension(
                    "ufunc_numpy",
                    ["ufunc_numpy.pyx"],
                    include_dirs=[numpy.get_include()],
                    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
                    extra_compile_args=FLAGS,
                    language="c++",
                )
            ],
            build_dir=generated,
            language_level=3,
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
