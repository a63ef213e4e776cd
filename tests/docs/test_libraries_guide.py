"""The blocks of docs/libraries.md, each with the library that it is about."""

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
    # Each in a process of its own: MPI is initialized when it is imported, and Numba keeps what was registered.
    for name in dict.fromkeys(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)):
        if name != "interop":
            pytest.importorskip(name, reason=f"{name} is not installed: pip install -r requirements/libraries.txt")
    command = [sys.executable, "-P", "-c", IMPORTS + code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_each_example_has_a_title():
    assert len(TITLES) == len(EXAMPLES) > 5
