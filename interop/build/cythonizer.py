"""`cythonize`: from .pyx to C++, with our declarations on the path."""

import contextlib
import glob
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import setuptools

from interop.build.extension import Extension
from interop.cython.checks import checked
from interop.cython.declarations import select, write_whole
from interop.cython.hints import hints
from interop.cython.patches import mend_memoryviews, mend_references
from interop.paths import get_include, get_pxd_dir

DIRECTIVES = {
    "language_level": 3,
    # None may be passed where a cdef class is declared, and reading .cdata of it would crash.
    "nonecheck": True,
    # Python prints them with "Exception ignored"; where interop/callback.h raises instead, nothing is to be printed.
    "unraisable_tracebacks": False,
}
"""The Cython directives that `cythonize` sets unless told otherwise; a ``# cython:`` line in a source wins."""


def cythonize(modules: Iterable[setuptools.Extension | str] | str, **kwargs: Any) -> list[setuptools.Extension]:
    """Translate the ``.pyx`` sources of `modules` to C++, with our declarations on the path and `DIRECTIVES` set.

    Parameters
    ----------
    modules
        Extensions, or paths and glob patterns of ``.pyx`` files.
    **kwargs
        As for `Cython.Build.cythonize`; ``include_path`` and ``compiler_directives`` add to ours. ``emit_linenums``
        is True unless you say otherwise.
    """
    from Cython.Build import cythonize as cython_cythonize

    if isinstance(modules, (str, setuptools.Extension)):
        modules = [modules]
    extensions = [Extension("*", [module]) if isinstance(module, str) else module for module in modules]
    patterns = [pattern for extension in extensions for pattern in extension.sources if is_cython(pattern)]
    sources = [source for pattern in patterns for source in glob.glob(os.fspath(pattern), recursive=True)]
    include_path = [*kwargs.get("include_path", ()), *(folder for e in extensions for folder in e.include_dirs)]
    folder = Path(kwargs.get("build_dir") or "build", "interop-pxd").resolve()
    selection = select(Path(get_pxd_dir()), Path(get_include()), sources, include_path, folder)
    kwargs["include_path"] = [str(selection.pxd), *kwargs.get("include_path", ())]
    kwargs["compiler_directives"] = DIRECTIVES | dict(kwargs.get("compiler_directives") or {})
    # Cython compares dates alone, and the declarations may be older than C++ that was made from others.
    changed = _note_declarations(folder / "used.json", sources, selection.pxd.parent.name)
    with our_rules():
        # With line numbers of the .pyx in the C++, errors of g++ name them.
        translated = cython_cythonize(extensions, **{"force": changed, "emit_linenums": True} | kwargs)
    for extension in translated:
        extension.include_dirs = [str(selection.include), *extension.include_dirs]
    return translated


@contextlib.contextmanager
def our_rules() -> Iterator[None]:
    """For a while Cython refuses what would go wrong in C++, gives hints, and mends what it gets wrong or lacks."""
    with (
        checked(),
        mend_references(),
        mend_memoryviews(),
        hints(),
    ):
        yield


def is_cython(source: str) -> bool:
    return os.fspath(source).endswith((".pyx", ".py"))


def _note_declarations(record: Path, sources: Iterable[str], digest: str) -> bool:
    """Notes which declarations `sources` are translated with now; whether any was translated with others, or never."""
    try:
        used = json.loads(record.read_text())
    except (OSError, ValueError):
        used = {}
    now = {os.path.abspath(source): digest for source in sources}
    if now.items() <= used.items():
        return False
    write_whole(record, json.dumps(used | now))
    return True
