"""The commands in docs/building-guide.md run, and write the files that it shows."""

import os
import re
import sys
from pathlib import Path

import pytest
import torch
from conftest import TESTS, needs_limited_api, needs_stable, run

from interop.abi.names import torch_requirement
from interop.new import write_project

GUIDE = (TESTS.parent / "docs" / "building-guide.md").read_text()
CELLS = """\
cimport ATen as at
cimport torch

def double(torch.Tensor x not None):
    return torch.wrap(at.mul(x.cdata, 2))
"""


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def shell(tmp_path):
    """Runs a block in bash, in an empty folder, with this Python's commands on PATH."""
    variables = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return lambda text: run(["bash", "-euo", "pipefail", "-c", text], cwd=tmp_path, env=variables)


@pytest.mark.long
def test_a_new_project(shell):
    """The command prints the guide's next commands, with which tests/build/test_new.py builds a project."""
    make, install, *_ = blocks("sh")
    printed = [line.strip() for line in shell(make).splitlines()]
    assert printed[-3:] == install.splitlines()


def test_files(tmp_path):
    (setup, _), (cmake,) = blocks("python"), blocks("cmake")
    write_project("cells", tmp_path)
    assert (tmp_path / "cells" / "setup.py").read_text() == setup
    (wanted,) = blocks("toml")
    wanted = wanted.strip().replace(torch_requirement("2.13.0"), torch_requirement(torch.__version__))
    assert wanted in (tmp_path / "cells" / "pyproject.toml").read_text().splitlines()
    (tmp_path / "other").mkdir()
    write_project("cells", tmp_path / "other", cmake=True)
    assert (tmp_path / "other" / "cells" / "CMakeLists.txt").read_text() == cmake


@needs_stable
@needs_limited_api
def test_files_of_a_stable_one(tmp_path):
    (_, stable) = blocks("python")
    write_project("cells", tmp_path, stable="2.11")
    made = (tmp_path / "cells" / "setup.py").read_text()
    assert made == stable.replace("cp312", f"cp3{min(12, sys.version_info[1])}")


@pytest.mark.slow
def test_on_a_command_line(shell, tmp_path):
    """The module works, and the doctor finds no problem, but warns that torch must be imported first."""
    *_, build, doctor = blocks("sh")
    (tmp_path / "cells.pyx").write_text(CELLS)
    assert shell(build) == "tensor([2., 2., 2.])\n"
    page = shell(doctor)
    assert "cells can be imported after torch, but not before" in page
    assert page.endswith("\nno problems, 1 warning\n")
