"""``%%torch_cython`` in a real kernel, as a notebook runs it."""

import re
import uuid

import pytest

CELL = """%%torch_cython {arguments}
cimport torch
cimport ATen as at

cdef class Scale:
    cdef readonly double factor
    def __init__(self): self.factor = 2

def twice(torch.Tensor x not None):
    return torch.wrap(at.mul(x.cdata, 2.0))

cpdef double half(double x):
    return x / 2

_hidden = 1
"""


def test_names_of_a_cell(notebook):
    assert notebook.run(CELL.format(arguments="")) == ""
    assert notebook.run("twice(torch.ones(2)), half(3), Scale().factor") == "(tensor([2., 2.]), 1.5, 2.0)"
    assert notebook.run("'_hidden' in globals()") == "False"


def test_progress_is_one_line_that_is_replaced(notebook):
    cell = f"%%torch_cython\ndef built_once(): return {uuid.uuid4().hex!r}\n"  # in no cache
    notebook.run(cell)
    (first, begins), *others = notebook.line
    assert (first, begins) == ("display_data", "cell: building")
    assert {kind for kind, _ in others} == {"update_display_data"}
    *stages, end = [text for _, text in others]
    assert [stage for stage in stages if "header" not in stage] == [
        "cell: translating",
        "cell: compiling",
        "cell: linking",
    ]
    assert re.fullmatch(r"cell: built in \d+\.\d s", end)
    notebook.run(cell)
    assert notebook.line == []  # nothing is built
    notebook.run("%%torch_cython\ndef f(): return nothing()\n", fails=True)
    assert notebook.line[-1] == ("update_display_data", "cell: not built")


@pytest.mark.extended
def test_progress_is_no_output_of_a_program(notebook):
    load = "interop.load_inline('def f(): return {}')"
    quiet = (
        f"import contextlib, io, interop\nwith contextlib.redirect_stderr(io.StringIO()) as e:\n    {load.format(1)}\n"
    )
    assert notebook.run(f"{quiet}print(repr(e.getvalue()))") == "''\n"
    assert notebook.line == []
    # torch warns where it finds a compiler of CUDA and no device.
    program = f"import logging; logging.disable(logging.WARNING); import interop; {load.format(2)}"
    process = f"import subprocess, sys; d = subprocess.run([sys.executable, '-c', \"{program}\"]"
    said = notebook.run(f"{process}, capture_output=True, text=True); print((d.returncode, d.stdout, d.stderr))")
    assert said == "(0, '', '')\n"
    assert notebook.line == []


def test_an_edited_cell(notebook):
    for value in (1, 2):
        notebook.run(f"%%torch_cython\ndef value(): return {value}\n")
        assert notebook.run("value()") == str(value)


def test_a_cell_that_is_wrong(notebook):
    said = notebook.run("%%torch_cython\ndef f():\n    return nothing()\n", fails=True)
    assert re.search(r"BuildError: .*\ncell:3:12: undeclared name .*\n +return nothing\(\)\n +\^$", said)
    assert "Traceback" not in said
    notebook.run("%%torch_cython\ndef f():\n    return 3\n")
    assert notebook.run("f()") == "3"


def test_a_traceback_shows_the_cell(notebook):
    notebook.run("%%torch_cython\ndef failing():\n    raise ValueError('here')\n")
    assert "raise ValueError('here')" in notebook.run("failing()", fails=True)


def test_the_report(notebook):
    said = notebook.run("%%torch_cython -a\ndef reported(x): return x + 1\n")
    assert "<style" in said
    assert "def reported(x): return x + 1" in re.sub("<[^>]*>", "", said)
    assert "<html" not in said
    assert notebook.run("reported(1)") == "2"


@pytest.mark.extended
def test_arguments(notebook):
    cell = (
        '%%torch_cython {}\ncdef extern from *:\n    int VALUE "__OPTIMIZE__ * NUMBER"\n'
        "def f(): return VALUE, __name__\n"
    )
    said = notebook.run(cell.format("--verbose -f -n named -c=-DNUMBER=3 --compile-args '-O1 -fno-math-errno'"))
    assert "-DNUMBER=3 -O1 -fno-math-errno" in said
    assert notebook.run("f()") == "(3, 'named')"
    first = notebook.run("import sys; sys.modules['named'].__file__")
    notebook.run(cell.format("-n named -c=-DNUMBER=3 -c=-O1 -c=-fno-math-errno"))
    assert notebook.run("sys.modules['named'].__file__") == first
    notebook.run(cell.format("-f -n named -c=-DNUMBER=3 -c=-O1 -c=-fno-math-errno"))
    assert notebook.run("sys.modules['named'].__file__") != first


def test_an_argument_that_there_is_not(notebook):
    assert "unrecognized arguments: --nonsense" in notebook.run("%%torch_cython --nonsense\nx = 1\n", fails=True)


def test_a_file_of_flags(notebook):
    said = notebook.run("%%torch_cython -c @flags.txt\nx = 1\n", fails=True)
    assert "extra_compile_args must have no file of flags, got '@flags.txt'" in said


def test_help(notebook):
    said = notebook.run("%%torch_cython -h\n1 / 0\n")
    assert "--annotate" in said
    assert "show which lines use Python" in said


def test_the_extension_can_be_unloaded(notebook):
    notebook.run("%unload_ext interop")
    try:
        assert "torch_cython` not found" in notebook.run("%%torch_cython\nx = 1\n", fails=True)
    finally:
        notebook.run("%load_ext interop")
    notebook.run("%%torch_cython\nloaded_again = 1\n")
    assert notebook.run("loaded_again") == "1"
