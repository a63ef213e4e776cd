"""The errors of a build with setuptools: what the compiler repeats for each dtype is said once."""

import os
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


PROGRAM = """\
import os, sys
import setuptools.errors
from interop.build.compiler_errors import errors_once
with errors_once():
    os.system({command!r})
    {end}
print("done")
"""
A_COMPILERS = "{ echo 'a.c:1:2: error: unknown type name'; } >&2"
"""Writes an error, as the compiler does for an optional extension, which setuptools leaves out."""


def in_build(end, **options):
    """Runs a program in which a command writes an error of a compiler's before `end`."""
    program = PROGRAM.format(command=A_COMPILERS, end=end)
    return subprocess.run([sys.executable, "-c", program], text=True, timeout=100, **options)


def test_another_error_stays(tmp_path):
    done = in_build("raise KeyError('the cause')", cwd=tmp_path, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'the cause'\n")
    assert "CompileError" not in done.stderr


def test_the_compilers_error_keeps_its_text(tmp_path):
    (tmp_path / "a.c").write_text("x y;\n")
    end = "raise setuptools.errors.CompileError('command failed')"
    done = in_build(end, cwd=tmp_path, capture_output=True)
    _, _, message = done.stderr.rpartition("CompileError: ")
    assert message.startswith("command failed\nthe compiler reports errors in the sources:\na.c:1:2: unknown type name")


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-", "<&-"])
def test_closed_descriptors(tmp_path, closed):
    program = PROGRAM.format(command=A_COMPILERS, end="open('made', 'w').close()")
    (tmp_path / "program.py").write_text(program)
    command = ["sh", "-c", f'"$0" program.py {closed}', sys.executable]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100, check=True)
    assert (tmp_path / "made").exists()


def test_a_full_pipe_fails_no_command(tmp_path):
    """The parent has made the pipe non-blocking, and does not read."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    end = "assert os.system('head -c 1000000 /dev/zero >&2') == 0"
    try:
        assert in_build(end, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=write).returncode == 0
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.slow
@pytest.mark.parametrize("ninja", [True, False])
def test_an_error_in_all_instances_is_said_once_below_the_output(tmp_path, ninja):
    (tmp_path / "wrong.pyx").write_text(SOURCE)
    (tmp_path / "setup.py").write_text(SETUP.format(ninja=ninja))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    output, _, summary = done.stderr.rpartition("the compiler reports errors in the sources:\n")
    place, text, mark = summary.splitlines()
    assert place.startswith("wrong.pyx:8:")
    assert "no_such_function" in place
    assert text.strip() in SOURCE
    assert text[: mark.index("^")].isspace()  # not the column of the C++
    assert (done.stdout + output).count("error: ") > 3  # what the compiler wrote stays
