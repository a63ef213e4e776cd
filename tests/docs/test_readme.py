"""The README's example, as a newcomer would copy it."""

import re
import shutil

import pytest
from conftest import BUILD, TESTS, install_project
from doc_blocks import of

README = (TESTS.parent / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.slow
def test_the_example_builds_and_runs(bare):
    (pyx,) = blocks("cython")
    setup, use = blocks("python")
    project, site = BUILD / "readme", BUILD / "readme-site"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    (project / "cell.pyx").write_text(pyx)
    (project / "setup.py").write_text(setup)
    install_project(project, site)
    assert bare(use, site) == "torch.Size([2, 4]) torch.Size([4, 3])\n"


def test_the_site_begins_with_the_same_example():
    assert of("docs/index.md", "cython") == blocks("cython")


def test_the_commands():
    targets = re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
    makefile = (TESTS.parent / "Makefile").read_text()
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
