"""The types that type checkers see in this package agree with its behaviour."""

import ast
import os
import re
import sys
from pathlib import Path

import pytest
from conftest import BUILD, TESTS, run

import interop

PACKAGE = Path(interop.__file__).parent
USER = TESTS / "build" / "typing" / "user.py"
# mypy does not see editable installs.
VARIABLES = os.environ | {"MYPYPATH": str(PACKAGE.parent)}


def mypy(file):
    """mypy's errors and notes for a file, by line."""
    # mypy reports nothing about installed packages, but this package is in a checkout.
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={BUILD / 'mypy'}"]
    command = [sys.executable, "-m", "mypy", *options, file.name]
    # The exit status is 1 if there are errors, and the tests expect some.
    output = run(["sh", "-c", '"$@" || test $? = 1', "sh", *command], cwd=file.parent, env=VARIABLES)
    assert re.search(r"^(Success|Found \d+ errors?)", output, re.MULTILINE), output
    said = {}
    for line, text in re.findall(rf"^{re.escape(file.name)}:(\d+): (error.*|note: Revealed.*)$", output, re.MULTILINE):
        said.setdefault(int(line), []).append(text)
    return said


@pytest.fixture(scope="module")
def found():
    return mypy(USER)


@pytest.mark.slow
def test_a_users_file(found):
    lines = USER.read_text().splitlines()
    expected = {}
    for number, line in enumerate(lines, 1):
        note = re.search(r"# (is|error:) (.+)$", line)
        if note and not line.startswith('"""'):
            expected[number] = note.groups()
    assert len(expected) >= 14
    assert found.keys() == expected.keys(), found
    for number, (kind, text) in expected.items():
        (said,) = found[number]
        assert (f'Revealed type is "{text}' if kind == "is" else f"[{text}]") in said, said


@pytest.mark.slow
def test_every_name_is_known(tmp_path):
    """mypy also knows the names that interop imports on first use."""
    file = tmp_path / "names.py"
    file.write_text("import interop\n" + "".join(f"interop.{name}\n" for name in dir(interop)))
    assert mypy(file) == {}


def test_every_known_name_is_there():
    """Every name that interop/__init__.py declares only for type checkers exists."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    names = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names == {*dir(interop)} - {"Error", "get_include", "get_pxd_dir"}
    for name in names:
        assert getattr(interop, name) is not None


def test_every_compiled_module_has_a_stub():
    compiled = {path.stem for path in PACKAGE.glob("*.pyx")}
    assert compiled
    assert {path.stem for path in PACKAGE.glob("*.pyi")} == compiled


@pytest.mark.slow
def test_stubs_agree_with_what_is_compiled():
    folder = TESTS / "build" / "typing"
    options = ["--mypy-config-file", folder / "stubtest.ini", "--allowlist", folder / "stubtest.allowed"]
    modules = [f"interop.{path.stem}" for path in sorted(PACKAGE.glob("*.pyi"))]
    output = run(
        [sys.executable, "-P", "-m", "mypy.stubtest", *options, "--ignore-unused-allowlist", *modules],
        cwd=BUILD,
        env=VARIABLES,
    )
    assert f"no issues found in {len(modules)} modules" in output
