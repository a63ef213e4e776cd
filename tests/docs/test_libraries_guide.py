"""The blocks of docs/libraries.md run, each with its library."""

import re
import subprocess
import sys

import pytest
from doc_blocks import DOCS, blocks

PAGE = "docs/libraries.md"
TITLES = re.findall(r"^## (.*)$", (DOCS / "libraries.md").read_text(), re.MULTILINE)
IMPORTS, *EXAMPLES = [block.code for block in blocks(PAGE) if block.language == "python"]


@pytest.mark.slow
@pytest.mark.parametrize(("title", "code"), list(zip(TITLES, EXAMPLES, strict=True)), ids=TITLES)
def test_blocks(title, code, tmp_path):
    # Each runs in a process of its own: importing MPI initialises it, and Numba keeps what was registered.
    for name in dict.fromkeys(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)):
        if name != "interop":
            pytest.importorskip(name, reason=f"{name} is not installed: pip install -r requirements/libraries.txt")
    command = [sys.executable, "-P", "-c", IMPORTS + code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_each_example_has_a_title():
    assert len(TITLES) == len(EXAMPLES) > 5
