"""Nothing outside interop/cython depends on Cython's compiler."""

import ast
from pathlib import Path

import interop

PACKAGE = Path(interop.__file__).parent


def test_no_other_module_imports_cython():
    others = [path for path in PACKAGE.rglob("*.py") if PACKAGE / "cython" not in path.parents]
    assert len(others) > 40
    found = {}
    for path in others:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if any(name.partition(".")[0] in ("Cython", "cython") for name in names):
                found[path.relative_to(PACKAGE).as_posix()] = node.lineno
    assert found == {}
