"""Compiles the cell's two native forms with the same flags; `interop.experiments.building` runs it."""

import sys

from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from interop.build import BuildExtension, Extension, cythonize
from interop.experiments.building import FLAGS

# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

# What ATen's own loops are compiled with; see csrc/include/interop/instruction_sets.h.
LOOPS = ["-fno-trapping-math", "-fno-math-errno"]

setup(
    name="lltm",
    ext_modules=[
        # torch/extension.h brings torch's own pybind11; a second one on the include path breaks at import.
        CppExtension("cell_cpp", ["cell_cpp.cpp"], extra_compile_args=FLAGS),
        *cythonize(
            [
                Extension("cell_cython", ["cell_cython.pyx"], extra_compile_args=FLAGS),
                Extension("cell_fused", ["cell_fused.pyx"], include_dirs=["."], extra_compile_args=[*FLAGS, *LOOPS]),
            ],
            build_dir=generated,
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
