"""docs/start.md works as written: the tour runs, the project builds, and pip installs what it needs."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import TESTS, run
from doc_blocks import blocks, of, write_files

PAGE = "docs/start.md"


def test_what_is_installed():
    """The page installs the build's requirements, with the torch that the tests use."""
    ((line,),) = (re.findall(r"^pip install (.*) pytest$", code, re.MULTILINE) for code in of(PAGE, "sh")[:1])
    torch, *others = re.findall(r"[^\s\"]+", line)
    needed = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["build-system"]["requires"]
    assert {name.lower() for name in others} == {name.lower() for name in needed}
    assert f"\n{torch}\n" in (TESTS.parent / "requirements" / "build.txt").read_text()


@pytest.mark.usefixtures("jit_cache")
def test_the_tour(tmp_path):
    """The blocks run in one new process, as a reader would paste them."""
    write_files(PAGE, tmp_path)
    code = "\n".join(of(PAGE, "python"))
    assert len(of(PAGE, "python")) == 4
    assert run([sys.executable, "-c", code], cwd=tmp_path).startswith("tensor([")


@pytest.mark.long
def test_the_commands(tmp_path):
    """The commands work as shown; tests/build/test_new.py builds the project."""
    _, doctor, new = of(PAGE, "sh")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = {"env": os.environ | {"PATH": path, "HOME": str(tmp_path)}, "cwd": tmp_path}
    # The doctor may warn about this machine. It fails if nothing can be compiled.
    assert "torch-interop" in run(["bash", "-euc", doctor], **shell)
    make, *build = new.splitlines(keepends=True)
    printed = subprocess.run(["bash", "-euc", make], check=True, capture_output=True, text=True, **shell).stdout
    assert [line.strip() for line in printed.splitlines()][-3:] == [line.strip() for line in build]
    assert (tmp_path / "cells" / "src" / "cells" / "ops.pyx").exists()
    setup = (tmp_path / "cells" / "setup.py").read_text()
    assert len(setup.partition("setup(\n")[2].splitlines()) <= 5


def test_nothing_is_left_out():
    assert {(block.language, block.note.partition(":")[0]) for block in blocks(PAGE)} == {
        ("sh", "not run"),
        ("sh", ""),
        ("cython", "file"),
        ("python", ""),
    }
