"""CUDA modules: one built by nvcc, and one of the same kernels built by g++ to run on the host."""

import os
from pathlib import Path

from setuptools import setup

from interop.build import BuildExtension, Extension
from interop.build.cuda import find_toolkit

# The tests build a copy of this project elsewhere.
checkout = Path(os.environ.get("INTEROP_CHECKOUT") or Path(__file__).resolve().parents[3])

emulated = Extension(
    "emulated",
    ["emulated.pyx", "emulated_kernels.cpp", "lltm_emulated.cpp"],
    # The emulation's launch.cuh must come before ours.
    include_dirs=[
        "emulation",
        str(checkout / "docs" / "experiments" / "lltm-cuda"),
        str(find_toolkit().home / "include"),
    ],
    extra_compile_args=["-Wno-unknown-pragmas"],
)
emulated.include_dirs.insert(0, "emulation")

setup(
    name="cuda-operators",
    ext_modules=[Extension("cuda_operators", ["cuda_operators.pyx", "operators.cu"]), emulated],
    cmdclass={"build_ext": BuildExtension},
)
