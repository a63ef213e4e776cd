"""Compiles the modules, and the same for another torch into BUILD-LIB/other; `interop.experiments.building` runs it."""

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
for_other = OTHER in os.environ
if for_other:  # which has no experiments
    FLAGS = os.environ[OTHER].split()
else:
    from interop.experiments import load

    FLAGS = load("import-order", "measure").FLAGS
    path = load("import-order", "other").make(objects / "other")
    command = [sys.executable, "setup.py", "build_ext", "--force"]
    command += ["--build-temp", str(objects / "for-other"), "--build-lib", str(library / "other")]
    variables = os.environ | {OTHER: " ".join(FLAGS), "PYTHONPATH": os.pathsep.join(map(str, path))}
    beside = subprocess.Popen(command, env=variables)

setup(
    name="import-order",
    ext_modules=[
        CppExtension(name, [f"{name}.cpp"], extra_compile_args=FLAGS)
        for name in ("with_pybind11", *(["gone_pybind11"] if for_other else []))
    ]
    + cythonize(
        [
            Extension(name, [f"{name}.pyx"], extra_compile_args=FLAGS)
            for name in ("with_interop", *(["gone_interop"] if for_other else []))
        ],
        build_dir=str(objects),  # and not beside the sources
    ),
    cmdclass={"build_ext": BuildExtension},
)
if not for_other and beside.wait():
    raise SystemExit(f"building for torch {torch.__version__} went well, and for the other torch not")
