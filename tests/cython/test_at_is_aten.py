"""`at` has the names of C++'s `at`, a mirror has the path of its header, and our own names are in `interop`."""

import builtins
import hashlib
import re
import subprocess
from pathlib import Path

import pytest
import torch
from conftest import BUILD, TESTS
from torch.utils.cpp_extension import include_paths

import interop
from interop.codegen.surface import RESERVED
from interop.cython.declared_names import names_in, scopes
from interop.stable_abi import release_of

PXD = Path(interop.get_pxd_dir())
TORCH = next(Path(folder) for folder in include_paths() if Path(folder, "ATen").is_dir())
EXTERN = re.compile(r'^cdef extern from "([^"]+)"', re.MULTILINE)
GENERATED = {"ATen/core/TensorBody.pxd"}
MIRRORS = sorted(
    path.relative_to(PXD).as_posix()
    for package in ("ATen", "c10", "torch/csrc")
    for path in (PXD / package).rglob("*.pxd")
    if EXTERN.search(path.read_text())
)
# Mirrors whose headers are read as text, because C++ cannot look their names up.
READ = [file for file in MIRRORS if "/cuda/" in file or file.startswith(("ATen/dlpack", "torch/csrc/"))]
NAMESPACES = ("at", "at::indexing", "c10", "c10::CachingAllocator", "c10::CachingDeviceAllocator", "caffe2")
# Every module has these.
OF_MODULES = {
    f"__{name}__" for name in ("builtins", "cached", "doc", "file", "loader", "name", "package", "path", "spec")
}


def entries(module):
    """The names that a module of declarations declares and cimports, without submodules that other modules cimport."""
    found = scopes(str(PXD))(module).entries.items()
    return {
        name: entry
        for name, entry in found
        if not (name.startswith("__pyx") or name in OF_MODULES)
        and not (entry.as_module and entry.qualified_name == f"{module}.{name}")
    }


def declared(file):
    """The names that a file declares itself."""
    path = PXD / file
    module = file.removesuffix(".pxd").replace("/", ".")
    found = entries(module).items()
    return {name for name, entry in found if entry.pos and Path(entry.pos[0].filename) == path}


def header(file):
    return Path(file).with_suffix(".h").as_posix()


def in_cpp(name):
    """The C++ spelling of a name that is reserved in Cython."""
    return name[:-1] if name.endswith("_") and name[:-1] in {*RESERVED, "None"} else name


def missing_in_cpp(names, namespaces, headers):
    """The `names` that C++ finds in none of the namespaces after it includes the headers; cached."""
    names = sorted(names)
    lines = [f"#include <{one}>" for one in headers]
    lines += ["namespace all {", *(f"using namespace {one};" for one in namespaces), "}"]
    before = len(lines)
    lines += [f"namespace lookup {{ using all::{in_cpp(name)}; }}" for name in names]
    text = "\n".join([*lines, ""])
    folder = BUILD / "lookup"
    folder.mkdir(parents=True, exist_ok=True)
    answer = folder / f"{hashlib.sha256(f'{torch.__version__} {TORCH} {text}'.encode()).hexdigest()[:24]}.txt"
    if not answer.exists():
        source = answer.with_suffix(".cpp")
        source.write_text(text)
        folders = [f"-I{one}" for one in include_paths()]
        command = ["c++", "-std=c++20", "-fsyntax-only", "-w", "-fmax-errors=0", *folders, str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        failed = {int(line) for line in re.findall(rf"^{re.escape(str(source))}:(\d+):\d+: error: ", done.stderr, re.M)}
        # An error elsewhere, as in a header, says nothing about a name.
        assert bool(failed) == bool(done.returncode), done.stderr[-3000:]
        assert min(failed, default=before + 1) > before, done.stderr[-3000:]
        answer.write_text(" ".join(map(str, sorted(failed))))
    return {names[int(line) - before - 1] for line in answer.read_text().split()}


@pytest.mark.long
@pytest.mark.extended
def test_every_name_of_at_is_one_of_aten():
    """C++ looks each name up. A name of our own fails here; it belongs in interop."""
    names = entries("ATen").keys()
    assert len(names) > 2000
    headers = [
        "ATen/ATen.h",
        "ATen/core/grad_mode.h",
        "ATen/OpMathType.h",
        "ATen/Parallel.h",
        "ATen/TensorIndexing.h",
        "ATen/TensorIterator.h",
    ]
    assert missing_in_cpp(names, ["at", "at::indexing"], headers) == set()


@pytest.mark.long
@pytest.mark.parametrize("module", ["ATen", "interop", "torch"])
@pytest.mark.extended
def test_what_a_hint_may_suggest_are_the_names_that_cython_finds(module):
    found = entries(module).keys() - vars(builtins).keys() - {"_aten"}
    assert names_in(str(PXD), module) - vars(builtins).keys() == found


def test_a_name_that_cpp_does_not_have_is_found_out():
    names = {"Tensor", "kFloat", "elementwise", "None_", "Slice"}
    assert missing_in_cpp(names, ["at"], ["ATen/core/Tensor.h"]) == {"elementwise", "None_", "Slice"}


@pytest.mark.extended
def test_every_name_of_a_mirror_is_in_torch():
    files = [file for file in MIRRORS if file not in (*GENERATED, *READ)]
    names = set().union(*map(declared, files))
    assert missing_in_cpp(names, NAMESPACES, ["ATen/ATen.h", *map(header, files)]) == set()


@pytest.mark.long
@pytest.mark.parametrize("file", READ)
def test_every_name_of_a_mirror_stands_in_its_header(file):
    """C++ cannot look these names up: CUDA's headers may be missing, DLPack has macros, and pybind11 is slow."""
    folder = (TORCH / file).parent
    headers = sorted(folder.glob("*.*h")) if "/cuda/" in file else [TORCH / header(file)]
    text = "".join(path.read_text() for path in headers)
    names = {name for name in declared(file) if not re.match(r"cuda[A-Z]|CU[a-z]+_st$", name)}  # CUDA's own
    assert {name for name in names if not re.search(rf"\b{in_cpp(name)}\b", text)} == set()


@pytest.mark.parametrize("file", MIRRORS)
def test_the_path_tells_a_mirror_from_a_facade(file):
    """A mirror declares from the header of its path. A facade's first line names its header and the reason."""
    text = (PXD / file).read_text()
    from_headers = set(EXTERN.findall(text))
    ours = {one for one in from_headers if one.startswith("interop/")}
    first, second = text.splitlines()[:2]
    line = second if file in GENERATED else first
    facade = re.match(r"# Facade over (interop/[\w/]+\.h)(?:: |, which ).+\.$", line)
    if ours:
        assert facade, line
        assert facade[1] in ours
    else:
        assert facade is None
        assert from_headers == {header(file)}


def test_what_lies_below_interop_is_ours():
    """Each path there is that of a header of ours."""
    for path in sorted((PXD / "interop").rglob("*.pxd")):
        file = path.relative_to(PXD).as_posix()
        standard = set(re.findall(r'^cdef extern from "(<\w+>)"', path.read_text(), re.MULTILINE))
        assert set(EXTERN.findall(path.read_text())) - standard <= {header(file)}, file


@pytest.mark.long
def test_the_package_hands_on_what_is_not_atens():
    """None of its names is also in Python's package or in `at`."""
    names = entries("interop").keys()
    assert len(names) > 50
    assert not names & set(dir(interop))
    assert not names & entries("ATen").keys()


@pytest.mark.long
def test_the_reference_lists_what_there_is(monkeypatch):
    """It is here because Cython has read all declarations for the tests above."""
    monkeypatch.syspath_prepend(TESTS.parent / "tools")
    from pxd_reference import PAGE, page

    listed = set(re.findall(r"`((?:ATen|c10|torch)/[\w/.]+\.h)`", PAGE.read_text()))
    assert len(listed) > 30
    missing = sorted(h for h in listed if not any(Path(folder, h).exists() for folder in include_paths()))
    (pinned,) = re.findall(r"^torch==(.*)$", (TESTS.parent / "requirements" / "build.txt").read_text(), re.MULTILINE)
    if missing and release_of(torch.__version__) != release_of(pinned):
        pytest.skip(f"torch {torch.__version__} lacks headers that the page lists: {', '.join(missing)}")

    assert PAGE.read_text() == page(PXD), "run: python tools/pxd_reference.py"
