"""Translates the ``.pyx`` sources of setuptools' extensions."""

import glob
import multiprocessing
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import setuptools
from Cython.Build.Dependencies import create_extension_list
from Cython.Compiler.Main import Context
from Cython.Compiler.Options import CompilationOptions, default_options

from interop.cython.translate import Source, Translation, collected, translate
from interop.paths import get_pxd_dir
from interop.processes import end_with_parent
from interop.stable_abi import of_macros

__all__ = ["DECLARATIONS", "is_cython", "translate_extensions"]

DECLARATIONS = "interop-pxd"
"""The folder for declarations and headers that the sources can need, in the build folder."""


def is_cython(source: str | os.PathLike[str]) -> bool:
    """Whether a source is for Cython."""
    return os.fspath(source).endswith((".pyx", ".py"))


def translate_extensions(
    extensions: Sequence[setuptools.Extension],
    *,
    include_path: Iterable[str] = (),
    compiler_directives: Mapping[str, Any] | None = None,
    build_dir: str | None = None,
    nthreads: int = 0,
    force: bool = False,
    quiet: bool = False,
    exclude: Iterable[str] | None = None,
    aliases: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[setuptools.Extension]:
    """The extensions with C++ in place of their ``.pyx``: see `interop.build.cythonize`."""
    left_out = [exclude] if isinstance(exclude, str) else list(exclude or ())
    folders = [*include_path, *(folder for extension in extensions for folder in extension.include_dirs)]
    context = Context.from_options(
        CompilationOptions(default_options, include_path=[get_pxd_dir(), *folders], **options)
    )
    with collected():
        excluded = {os.path.abspath(path) for pattern in left_out for path in _matching(pattern)}
        for pattern in [source for extension in extensions for source in extension.sources if is_cython(source)]:
            for path in _matching(pattern):
                if os.path.abspath(path) not in excluded:
                    # Reports the line of what cannot be read, unlike create_extension_list.
                    Source(path, folders).distutils()
        # With aliases=None, Cython adds an extension's settings to its record of the source, and so to the next
        # extension of that source, even in a later call. A module that must not link to torch would get torch's
        # libraries.
        found, _ = create_extension_list(
            list(extensions), exclude=left_out, ctx=context, aliases=aliases or {}, quiet=quiet
        )
    tasks = []
    for extension in found:
        for index, source in enumerate(extension.sources):
            if is_cython(source):
                cplus = extension.language == "c++"
                abi = of_macros(extension.define_macros)
                stable = abi is not None
                cpp = _output(source, build_dir, f"{'.stable' if stable else ''}{'.cpp' if cplus else '.c'}")
                extension.sources[index] = str(cpp)
                arguments = {
                    "path": source,
                    "module": extension.name,
                    "cpp": cpp,
                    "cplus": cplus,
                    "declarations": Path(build_dir or "build", DECLARATIONS).resolve(),
                    "include_path": [*include_path, *extension.include_dirs],
                    "directives": getattr(extension, "directives", {}) | dict(compiler_directives or {}),
                    "force": force,
                    "stable": stable,
                    "limited_api": abi is not None and abi.python is not None,
                    "echo": not quiet,
                    # Put line numbers of the .pyx into the C++, so that g++'s errors name them.
                    "emit_linenums": True,
                }
                tasks.append((extension, arguments | options))
    if nthreads and len(tasks) > 1:
        with ProcessPoolExecutor(nthreads, multiprocessing.get_context("fork"), end_with_parent) as pool:
            done = list(pool.map(_translated, [arguments for _, arguments in tasks]))
    else:
        done = [_translated(arguments) for _, arguments in tasks]
    for (extension, arguments), translation in zip(tasks, done, strict=True):
        # C++ in a different folder from its source must find the headers beside the source.
        beside = os.path.dirname(arguments["path"]) or "."
        extension.include_dirs = [*translation.include_dirs, *extension.include_dirs, *([beside] if build_dir else [])]
    return found


def _matching(pattern: str) -> Iterable[str]:
    """The paths that match a pattern, as create_extension_list finds them."""
    try:
        from Cython.Build.Dependencies import extended_iglob
    except ImportError:  # in another release of Cython; this one reads no {a,b}
        return glob.glob(pattern, recursive=True)
    return extended_iglob(pattern)


def _translated(arguments: dict[str, Any]) -> Translation:
    """A module-level function, because another process may call it."""
    said = f"Cythonizing {arguments['path']}"
    return translate(started=lambda _: arguments["echo"] and print(said, flush=True), **arguments)


def _output(source: str, build_dir: str | None, suffix: str) -> Path:
    """The file for the C++ of a source: beside it, or below `build_dir` at its path from the current folder.

    A stable module has another suffix, so that a project can build both kinds from one source.
    """
    path = Path(source).with_suffix(suffix)
    return Path(build_dir, *(path.parts[1:] if path.is_absolute() else path.parts)) if build_dir else path
