import sys
from pathlib import Path

from setuptools import setup

from interop.build import BuildExtension, Extension

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from table import MODULES, pyx  # noqa: E402

modules = []
for name in MODULES:
    source, text = HERE / f"{name}.pyx", pyx(name)
    if not source.exists() or source.read_text() != text:  # otherwise it would be compiled again
        source.write_text(text)
    modules.append(Extension(name, [source.name], include_dirs=["."]))
setup(name="schema_types", py_modules=[], ext_modules=modules, cmdclass={"build_ext": BuildExtension})
