import sys
from pathlib import Path

from setuptools import setup

from interop.build import BuildExtension, Extension

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from table import pyx  # noqa: E402

source = HERE / "call_forms.pyx"
if not source.exists() or source.read_text() != pyx():  # else it would be compiled again
    source.write_text(pyx())
# -O0, because its thousand calls would take a minute otherwise.
module = Extension("call_forms", ["call_forms.pyx"], extra_compile_args=["-O0"])
setup(name="call_forms", py_modules=[], ext_modules=[module], cmdclass={"build_ext": BuildExtension})
