"""Compiles the cell's CUDA kernels and their host side; `harness/building.py` runs it."""

import sys

from setuptools import setup

from interop.build import BuildExtension, Extension, cythonize

generated = sys.argv[sys.argv.index("--build-temp") + 1]
cell = Extension("cell_cuda", ["cell_cuda.pyx", "cell_cuda.cu"], include_dirs=["."])

setup(
    name="lltm-cuda",
    # ../lltm has what both kinds of kernels accept.
    ext_modules=cythonize(cell, build_dir=generated, include_path=["../lltm"]),
    cmdclass={"build_ext": BuildExtension},
)
