"""The README's example, as a newcomer would copy it."""

import re
import shutil
import tomllib

import pytest
import torch
from conftest import BUILD, TESTS, install_project
from doc_blocks import of

import interop

README = (TESTS.parent / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.slow
def test_the_example_builds_and_runs(bare):
    (pyx,) = blocks("cython")
    _, setup, use = blocks("python")
    project, site = BUILD / "readme", BUILD / "readme-site"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    (project / "cell.pyx").write_text(pyx)
    (project / "setup.py").write_text(setup)
    install_project(project, site)
    assert bare(use, site) == "torch.Size([2, 4]) torch.Size([4, 3])\n"


@pytest.mark.parametrize("language", ["cython", "python"])
def test_the_site_begins_with_the_same_example(language):
    assert of("docs/index.md", language)[0] == blocks(language)[0]


@pytest.mark.usefixtures("jit_cache")
def test_the_example_runs_just_in_time(tmp_path, monkeypatch, capsys):
    """As the lines below the example say."""
    (pyx,) = blocks("cython")
    assert len(pyx.splitlines()) <= 10
    (tmp_path / "cell.pyx").write_text(pyx)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(blocks("python")[0], names)
    assert capsys.readouterr().out.startswith("tensor([[")
    function = names["cell"]
    x, weight = torch.randn(2, 3), torch.randn(4, 3, requires_grad=True)
    y = function(x, weight)
    assert torch.equal(y, torch.tanh(torch.nn.functional.linear(x, weight)))
    assert y.requires_grad


LOOPS = """\
cimport torch
from interop cimport accessor1, const_accessor1

def first_doubled(torch.Tensor x not None, torch.Tensor out not None):
    cdef const_accessor1[float] a = const_accessor1[float](x.cdata, b"x")
    cdef accessor1[float] b = accessor1[float](out.cdata, b"out")
    b[0] = 2 * a[0]
    return out
"""


@pytest.mark.usefixtures("jit_cache")
def test_a_loop_without_a_gradient():
    """A read gives a result without one, and a write raises, as the pages say."""
    loops = interop.load_inline(LOOPS)
    x = torch.ones(1, requires_grad=True)
    assert not loops.first_doubled(x, torch.zeros(1)).requires_grad
    with pytest.raises(RuntimeError, match=r"^argument 'out' must not require grad to be written to"):
        loops.first_doubled(torch.ones(1), x)
    for page in ("README.md", "docs/index.md"):
        text = " ".join((TESTS.parent / page).read_text().split())
        assert "A loop that only reads such a tensor raises nothing, and its result has no gradient." in text


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_order_of_the_front(page):
    """The purpose, code, a picture and three entry points come before anything else."""
    text = (TESTS.parent / page).read_text()
    _, what, rest = text.split("\n\n", 2)
    assert len(what.splitlines()) == 2
    places = [
        rest.index(mark)
        for mark in ("```cython", "![", "**I write Cython.**", "**I write Python.**", "**I port C++.**")
    ]
    assert places == sorted(places)
    assert places[0] == 0
    assert "## " not in rest[: places[1]]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_releases_of_python_are_those_of_the_classifiers(page):
    """`requires-python` has no upper end, because a newer CPython may work."""
    classifiers = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]["classifiers"]
    releases = [release for one in classifiers for release in re.findall(r"Python :: (3\.\d+)", one)]
    said = re.findall(r"Python (3\.\d+ to 3\.\d+)", (TESTS.parent / page).read_text())
    assert set(said) == {f"{releases[0]} to {releases[-1]}"}


def test_the_commands():
    targets = re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
    makefile = (TESTS.parent / "Makefile").read_text()
    assert targets == ["demo"]
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
