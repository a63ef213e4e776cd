"""Compiles the modules, and the same for another torch into BUILD-LIB/other; `harness/building.py` runs it."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from interop.build import BuildExtension, Extension, cythonize

OTHER = "INTEROP_OTHER_TORCH"
objects, library = (Path(sys.argv[sys.argv.index(option) + 1]) for option in ("--build-temp", "--build-lib"))


def build(flags: list[str], kinds: list[str]) -> None:
    """Compile the modules of these kinds for the torch that is imported here."""
    native = [CppExtension(f"{kind}_pybind11", [f"{kind}_pybind11.cpp"], extra_compile_args=flags) for kind in kinds]
    cython = [Extension(f"{kind}_interop", [f"{kind}_interop.pyx"], extra_compile_args=flags) for kind in kinds]
    setup(
        name="import-order",
        ext_modules=[*native, *cythonize(cython, build_dir=str(objects))],  # and not beside the sources
        cmdclass={"build_ext": BuildExtension},
    )


if OTHER in os.environ:  # where there are no experiments to load
    build(os.environ[OTHER].split(), ["with", "gone"])
else:
    from experiments import load

    flags = load("import-order", "measure").FLAGS
    path = load("import-order", "other").make(objects / "other")
    command = [sys.executable, "setup.py", "build_ext", "--force"]
    command += ["--build-temp", str(objects / "for-other"), "--build-lib", str(library / "other")]
    variables = os.environ | {OTHER: " ".join(flags), "PYTHONPATH": os.pathsep.join(map(str, path))}
    with subprocess.Popen(command, env=variables) as beside:
        build(flags, ["with"])
    if beside.returncode:
        raise SystemExit(f"building for torch {torch.__version__} went well, and for the other torch not")
