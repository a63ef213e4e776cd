import sys
from pathlib import Path

from setuptools import setup

from interop.build import BuildExtension, Extension
from interop.stable_abi import release_of
from interop.toolchain import MINIMUM_STABLE, find_torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from table import pyx  # noqa: E402

modules = []
kinds = [("call_forms", None), ("stable_call_forms", "2.11")]
for name, stable in kinds if release_of(find_torch().version) >= MINIMUM_STABLE else kinds[:1]:
    source, text = HERE / f"{name}.pyx", pyx(stable=stable is not None)
    if not source.exists() or source.read_text() != text:  # otherwise it would be compiled again
        source.write_text(text)
    # -O0: without it, the thousand calls take a minute to compile.
    modules.append(Extension(name, [source.name], stable=stable, extra_compile_args=["-O0"]))
setup(name="call_forms", py_modules=[], ext_modules=modules, cmdclass={"build_ext": BuildExtension})
