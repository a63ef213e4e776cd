"""The errors of a build with setuptools: what the compiler repeats for each dtype is said once."""

import subprocess
import sys

import pytest

SOURCE = """\
cimport ATen as at
cimport torch
from interop cimport AT_ALL_TYPES, any_t, instantiate_part, scalar_t
from libc.stdint cimport int64_t
cdef extern from *:
    T none "no_such_function"[T](T x) nogil
cdef void wrong(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    (<scalar_t*> of)[0] = none((<scalar_t*> of)[0])
def f(torch.Tensor x not None):
    at.parallel_for(0, 1, 1, instantiate_part(x.cdata.scalar_type(), b"wrong", wrong, AT_ALL_TYPES), x.cdata.data_ptr())
"""
SETUP = """\
from setuptools import setup
from interop.build import BuildExtension, Extension
build = BuildExtension.with_options(use_ninja={ninja})
extension = Extension("wrong", ["wrong.pyx"], extra_compile_args=["-O0"])
setup(name="wrong", ext_modules=[extension], cmdclass={{"build_ext": build}})
"""


@pytest.mark.slow
@pytest.mark.parametrize("ninja", [True, False])
def test_an_error_in_all_instances_is_said_once_below_the_output(tmp_path, ninja):
    (tmp_path / "wrong.pyx").write_text(SOURCE)
    (tmp_path / "setup.py").write_text(SETUP.format(ninja=ninja))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    output, _, summary = done.stderr.rpartition("error: the compiler reports errors in the sources:\n")
    place, text, mark = summary.splitlines()
    assert place.startswith("wrong.pyx:8:")
    assert "no_such_function" in place
    assert text.strip() in SOURCE
    assert text[: mark.index("^")].isspace()  # not the column of the C++
    assert (done.stdout + output).count("error: ") > 3  # what the compiler wrote stays
