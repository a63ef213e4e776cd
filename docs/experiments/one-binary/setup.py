"""Compiles the kernels in all ways with the same flags; `harness/building.py` runs it."""

import sys
from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from experiments import load
from experiments.harness.building import FLAGS
from interop.build import BuildExtension, cythonize

ways = load("one-binary", "ways")
# What Cython writes goes where the objects go, not beside its source. Each way has a folder: the source is the same.
generated = Path(sys.argv[sys.argv.index("--build-temp") + 1])

pybind11, operators = (ways.module_name(way) for way in (ways.PYBIND11, ways.OPERATORS))
setup(
    name="one-binary",
    ext_modules=[
        CppExtension(pybind11, ["kernels_pybind11.cpp"], extra_compile_args=FLAGS),
        CppExtension(
            operators,
            ["kernels_torch_ops.cpp"],
            define_macros=[("TORCH_TARGET_VERSION", ways.TARGET), ("TORCH_STABLE_ONLY", None)],
            extra_compile_args=FLAGS,
            py_limited_api=True,  # as torch's documentation says of such a library: no Python is in it
        ),
        *(
            extension
            for way in ways.CYTHON
            if way in ways.available()
            for extension in cythonize(
                ways.extension(way, flags=FLAGS), build_dir=str(generated / ways.module_name(way))
            )
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
