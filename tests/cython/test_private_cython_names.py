"""Only interop/cython imports Cython, and headers use only these private names of the C++ that Cython writes."""

import ast
import re
from pathlib import Path

import interop

PACKAGE = Path(interop.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
PRIVATE = {  # each name in Cython's C++, with the reason for its use
    "__Pyx_ErrOccurredWithGIL": "Cython has no option for an exception check that does not wait for the GIL",
    "__Pyx_INC_MEMVIEW": "a function in C++ that returns a memoryview must own it as Cython's own functions do",
    "__Pyx_MODULE_NAME": "a library of operators is registered for the module that defines it",
    "__pyx_m": "a mark in the module's object separates a new import from a further registration",
    "__pyx_base": "the struct of a class that is derived from another begins with it, as Python's do with ob_base",
    "__pyx_t_": "a message names a type as in the source, and RTTI has only the name in the C++",
    "__pyx_v_of": "in a template, only the name of the parameter `of` leads to the type of the instance",
}


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


def test_the_private_names_in_headers():
    """A macro of Cython's, `CYTHON_...`, would be one as well."""
    found = set()
    paths = [path for folder in ("csrc", "stable", "pxd") for path in (ROOT / folder).rglob("*")]
    for path in [path for path in paths if path.is_file() and path.suffix != ".a"]:
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(r"\b(__[Pp]yx_t_|__[Pp]yx_\w+|__PYX_\w+|CYTHON_\w+)", text))
    assert found == PRIVATE.keys()
