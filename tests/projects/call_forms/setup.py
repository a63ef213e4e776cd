import sys
from pathlib import Path

from setuptools import setup

from interop.build import BuildExtension, Extension

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from table import pyx  # noqa: E402

(HERE / "call_forms.pyx").write_text(pyx())
# -O0, because its thousand calls would take a minute otherwise.
module = Extension("call_forms", ["call_forms.pyx"], extra_compile_args=["-O0"])
setup(name="call_forms", py_modules=[], ext_modules=[module], cmdclass={"build_ext": BuildExtension})
