"""The errors of a build with setuptools: each is said once, in place of the output of the compiler that fails."""

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
import os, subprocess, sys
from pathlib import Path
import setuptools.errors
from interop.build.compiler_errors import errors_once
with errors_once(Path("build")) as held:
    os.system({command!r})
    {end}
print("done")
"""
A_COMPILERS = "{ echo 'a.c:1:2: error: unknown type name'; } >&2"
"""Writes an error, as the compiler does for an optional extension, which setuptools leaves out."""


NINJAS = """\
[1/3] c++ a.c
FAILED: [code=1] a.o
c++ a.c
a.c:1:2: error: unknown type name
[2/3] c++ b.c
b.c:1:2: warning: unused variable
ninja: build stopped: subcommand failed.
"""
"""What ninja writes if a compiler reports an error and another one a warning."""
FAILS = "raise RuntimeError('ninja failed') from subprocess.CalledProcessError(1, 'ninja')"


def in_build(end, command=A_COMPILERS, **options):
    """Runs a program in which a command writes what a compiler writes before `end`."""
    program = PROGRAM.format(command=command, end=end)
    return subprocess.run([sys.executable, "-c", program], text=True, timeout=100, **options)


@pytest.mark.extended
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


def in_ninjas(folder, text, end, **variables):
    """Runs a program in which ninja writes a text before `end`, and returns its stdout and its stderr."""
    (folder / "a.c").write_text("x y;\n")
    (folder / "ninja.txt").write_text(text)
    environment = os.environ | variables
    done = in_build(end, "cat ninja.txt", cwd=folder, capture_output=True, env=environment)
    return done.stdout, done.stderr


@pytest.mark.extended
class TestOutput:
    """The output of a command that fails is held back, and only that."""

    def test_ninjas(self, tmp_path):
        shown, message = in_ninjas(tmp_path, NINJAS, FAILS)
        assert shown.splitlines() == [NINJAS.splitlines()[0], *NINJAS.splitlines()[4:]]
        assert "a.c:1:2: unknown type name\n" in message
        assert "output is in build/compiler-output.txt; the environment variable INTEROP_VERBOSE=1 " in message
        assert (tmp_path / "build" / "compiler-output.txt").read_text() == NINJAS

    def test_a_variable_shows_all(self, tmp_path):
        shown, message = in_ninjas(tmp_path, NINJAS, FAILS, INTEROP_VERBOSE="1")
        assert shown == NINJAS
        assert "a.c:1:2: unknown type name\n" in message

    @pytest.mark.parametrize("end", [FAILS, "raise KeyError", "raise KeyboardInterrupt", "os._exit = None"])
    def test_without_an_error_in_a_source_all_is_shown(self, tmp_path, end):
        text = NINJAS.replace("a.c:1:2: error: unknown type name", "Killed")
        shown, _ = in_ninjas(tmp_path, text, end)
        assert sorted([*text.splitlines(), *(["done"] if "_exit" in end else [])]) == sorted(shown.splitlines())

    def test_without_a_file_all_is_shown(self, tmp_path):
        (tmp_path / "build").touch()
        shown, message = in_ninjas(tmp_path, NINJAS, FAILS)
        assert sorted(shown.splitlines()) == sorted(NINJAS.splitlines())
        assert "compiler-output.txt" not in message

    @pytest.mark.parametrize("status", [0, 1])
    def test_a_command_of_setuptools(self, tmp_path, status):
        (tmp_path / "a.c").write_text("x y;\n")
        (tmp_path / "output.txt").write_text("a.c:1:2: error: unknown type name\n")
        command = ["sh", "-c", f"cat output.txt; exit {status}"]
        end = f"""
    try:
        held(subprocess.check_call)({command!r}, env=dict(os.environ))
    except subprocess.CalledProcessError:
        raise setuptools.errors.CompileError('command failed')"""
        done = in_build(end, "true", cwd=tmp_path, capture_output=True)
        assert done.returncode == status
        assert ("a.c:1:2: error: " in done.stderr) is (status == 0)
        assert ("a.c:1:2: unknown type name" in done.stderr) is (status == 1)


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-", "<&-"])
@pytest.mark.extended
def test_closed_descriptors(tmp_path, closed):
    program = PROGRAM.format(command=A_COMPILERS, end="open('made', 'w').close()")
    (tmp_path / "program.py").write_text(program)
    command = ["sh", "-c", f'"$0" program.py {closed}', sys.executable]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100, check=True)
    assert (tmp_path / "made").exists()


@pytest.mark.extended
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
def test_an_error_in_all_instances_is_said_once(tmp_path, ninja):
    (tmp_path / "wrong.pyx").write_text(SOURCE)
    (tmp_path / "setup.py").write_text(SETUP.format(ninja=ninja))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    output, _, summary = done.stderr.rpartition("the compiler reports errors in the sources:\n")
    place, text, mark, where = summary.splitlines()
    assert place.startswith("wrong.pyx:8:")
    assert "no_such_function" in place
    assert text.strip() in SOURCE
    assert text[: mark.index("^")].isspace()  # not the column of the C++
    assert "in build/compiler-output.txt" in where
    assert "no_such_function" not in done.stdout + output
    assert (tmp_path / "build" / "compiler-output.txt").read_text().count("error: ") > 3
