"""Compiles the module of each port, or of those that the environment variable `MODULES` names."""

import os
import sys
from pathlib import Path

from setuptools import setup

from experiments import load
from experiments.harness.building import MODULES
from interop.build import BuildExtension, Extension, cythonize

FLAGS = load("ports", "base").FLAGS
# Cython's output goes where the objects go, not beside its source.
generated = sys.argv[sys.argv.index("--build-temp") + 1]

sources = {path.stem: path for path in sorted(Path().glob("*/*_cython.pyx"))}
wanted = os.environ.get(MODULES, " ".join(sources)).split()
modules = [
    Extension(name, [str(sources[name])], include_dirs=[str(sources[name].parent)], extra_compile_args=FLAGS)
    for name in wanted
]
setup(name="ports", ext_modules=cythonize(modules, build_dir=generated), cmdclass={"build_ext": BuildExtension})
