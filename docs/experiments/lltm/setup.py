"""Compiles the cell's native forms with the same flags; `harness/building.py` runs it."""

import os
import sys

from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from experiments.harness.building import LOOP_FLAGS, MODULES
from interop.build import BuildExtension, Extension, cythonize

wanted = os.environ.get(MODULES, "cell_cpp cell_cython cell_op cell_fused").split()
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]
cython = [
    Extension(name, [f"{name}.pyx"], include_dirs=["."], extra_compile_args=LOOP_FLAGS)
    for name in ("cell_cython", "cell_op", "cell_fused")
    if name in wanted
]
# torch brings a pybind11 of its own; a second one on the include path breaks at import.
cpp = [CppExtension("cell_cpp", ["cell_cpp.cpp"], extra_compile_args=LOOP_FLAGS)] if "cell_cpp" in wanted else []

setup(
    name="lltm",
    ext_modules=[*cpp, *cythonize(cython, build_dir=generated, nthreads=os.cpu_count() or 1)],
    cmdclass={"build_ext": BuildExtension},
)
