"""Build Cython modules that use torch's tensors, on top of `torch.utils.cpp_extension`.

A project's whole ``setup.py``::

    from setuptools import setup
    from interop.build import BuildExtension, Extension

    setup(name="cells", ext_modules=[Extension("cells", ["cells.pyx"])], cmdclass={"build_ext": BuildExtension})

Build it with ``pip install --no-build-isolation .``: pip's isolation would compile against another, newer torch.
"""

import glob
import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

import setuptools
import torch
from torch.utils import cpp_extension

from interop.abi.names import abi_name
from interop.codegen.select import select
from interop.paths import get_include, get_pxd_dir, get_source_dir

__all__ = ["DIRECTIVES", "BuildExtension", "Extension", "cythonize"]

DIRECTIVES = {
    "language_level": 3,
    # None may be passed where a cdef class is declared, and reading .cdata of it would crash.
    "nonecheck": True,
}
"""The Cython directives that `cythonize` sets unless told otherwise; a ``# cython:`` line in a source wins."""

CXX_FLAGS = ("-std=c++20",)
"""What torch's headers need: required from torch 2.14 on, accepted since 2.10."""


class _Bootstrapped(setuptools.Extension):
    """An extension that gets a bootstrap. Cython keeps the class when it makes a new extension of one."""


def Extension(name: str, sources: Sequence[str], *, bootstrap: bool = True, **kwargs) -> setuptools.Extension:  # noqa: N802
    """A `setuptools.Extension` for Cython or C++ that uses torch's tensors.

    Parameters
    ----------
    name
        The module's full dotted name.
    sources
        ``.pyx``, ``.cpp`` and other files.
    bootstrap
        Whether the module can be imported without ``import torch`` before it, and says which torch it was built for
        when that is not the running one. It then consists of two files, NAME and _NAME_torch_X_Y.
    **kwargs
        As for `setuptools.Extension`. ``extra_compile_args`` may be a dict of lists by compiler (``"cxx"``,
        ``"nvcc"``). C++20 and -O2 are added, unless flags there or in ``CFLAGS`` say otherwise.
    """
    if not isinstance(name, str) or not all(part.isidentifier() or part == "*" for part in name.split(".")):
        raise ValueError(f"name must be a module's dotted name, such as 'package.module', got {name!r}")
    if isinstance(sources, (str, os.PathLike)) or not all(isinstance(s, (str, os.PathLike)) for s in sources):
        raise TypeError(f"sources must be a list of paths, such as ['module.pyx'], got {sources!r}")
    if kwargs.get("py_limited_api"):
        raise ValueError("py_limited_api must be left out: torch's C++ interface is not part of Python's stable ABI")
    kwargs["include_dirs"] = [get_include(), *kwargs.get("include_dirs", ())]
    kwargs["extra_compile_args"] = _with_default_flags(kwargs.get("extra_compile_args", ()))
    extension = cpp_extension.CppExtension(name, [os.fspath(source) for source in sources], **kwargs)
    if bootstrap:
        extension.__class__ = _Bootstrapped
    return extension


def cythonize(modules: Iterable[setuptools.Extension | str] | str, **kwargs) -> list[setuptools.Extension]:
    """Translate the ``.pyx`` sources of `modules` to C++, with our declarations on the path and `DIRECTIVES` set.

    Parameters
    ----------
    modules
        Extensions, or paths and glob patterns of ``.pyx`` files.
    **kwargs
        As for `Cython.Build.cythonize`; ``include_path`` and ``compiler_directives`` add to ours.
    """
    from Cython.Build import cythonize as cython_cythonize

    if isinstance(modules, (str, setuptools.Extension)):
        modules = [modules]
    extensions = [Extension("*", [module]) if isinstance(module, str) else module for module in modules]
    patterns = [pattern for extension in extensions for pattern in extension.sources if _is_cython(pattern)]
    sources = [source for pattern in patterns for source in glob.glob(os.fspath(pattern), recursive=True)]
    for source in sources:
        _refuse_idle_guards(source)
    include_path = [*kwargs.get("include_path", ()), *(folder for e in extensions for folder in e.include_dirs)]
    folder = Path(kwargs.get("build_dir") or "build", "interop-pxd").resolve()
    pxd = select(Path(get_pxd_dir()), sources, include_path, folder)
    kwargs["include_path"] = [str(pxd), *kwargs.get("include_path", ())]
    kwargs["compiler_directives"] = DIRECTIVES | dict(kwargs.get("compiler_directives") or {})
    return cython_cythonize(extensions, **kwargs)


class BuildExtension(cpp_extension.BuildExtension):
    """torch's build_ext, which also cythonizes with our `cythonize` and adds the bootstrap to our extensions."""

    def finalize_options(self):
        extensions = []
        for extension in self.distribution.ext_modules or []:
            # Only Cython knows which modules a pattern stands for; other sources wait until they are built.
            named = cythonize(extension) if "*" in extension.name else [extension]
            extensions += [part for one in named for part in _halves(one)]
        self.distribution.ext_modules = extensions
        super().finalize_options()

    def build_extensions(self):
        for extension in self.extensions:
            if any(map(_is_cython, extension.sources)):
                _translate(extension)
        super().build_extensions()

    def get_source_files(self):
        """What goes into the project's sdist: not the bootstrap, which is ours."""
        return [source for source in super().get_source_files() if source != _BOOTSTRAP]


_BOOTSTRAP = os.path.join(get_source_dir(), "bootstrap.cpp")


def _halves(extension: setuptools.Extension) -> Iterable[setuptools.Extension]:
    """The bootstrap and the real module of an extension of ours; any other extension as it is.

    Both are ordinary extensions to setuptools, so it builds, copies and records both.
    """
    if not isinstance(extension, _Bootstrapped):
        yield extension
        return
    abi = abi_name(torch.__version__)
    package, dot, module = extension.name.rpartition(".")
    native = f"_{module}_{abi}"
    suffix = os.environ.get("SETUPTOOLS_EXT_SUFFIX") or sysconfig.get_config_var("EXT_SUFFIX")
    yield setuptools.Extension(
        extension.name,
        [_BOOTSTRAP],
        define_macros=[
            ("INTEROP_MODULE", module),
            ("INTEROP_ABI", f'"{abi}"'),
            ("INTEROP_NATIVE", f'"{native}{suffix}"'),
        ],
        extra_compile_args=_with_default_flags(()),
        language="c++",
    )
    extension.module_name = extension.name
    extension.name = package + dot + native
    yield extension


def _translate(extension: setuptools.Extension) -> None:
    """Replaces the Cython sources of an extension by C++, and takes over what their ``# distutils:`` lines say."""
    file_name = extension.name
    extension.name = getattr(extension, "module_name", file_name)
    (translated,) = cythonize(extension)
    for name, value in vars(translated).items():
        if name != "name" and not name.startswith("_"):  # setuptools has its own notes behind an underscore
            setattr(extension, name, value)
    extension.name = file_name


def _refuse_idle_guards(source: str) -> None:
    """Raises SyntaxError for a guard that is declared and never assigned: Cython leaves it out without a word."""
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for guard in re.finditer(
        r"^[ \t]*cdef[ \t]+(?:torch\.)?(NoGradGuard|AutoGradMode|InferenceMode)[ \t]+(\w+)[ \t]*(?:#.*)?$", text, re.M
    ):
        kind, name = guard.groups()
        if not re.search(rf"\b{name}[ \t]*=", text):
            line = text.count("\n", 0, guard.start()) + 1
            raise SyntaxError(
                f"{name!r} is declared but never assigned, so this guard would do nothing; "
                f"write: cdef torch.{kind} {name} = torch.{kind}({'False' if kind == 'AutoGradMode' else ''})",
                (source, line, 1, guard[0]),
            )


def _is_cython(source: str) -> bool:
    return os.fspath(source).endswith((".pyx", ".py"))


def _with_default_flags(flags):
    """`flags` behind our defaults, so that they win; an optimisation level in CFLAGS wins over ours too."""
    if isinstance(flags, dict):
        return flags | {"cxx": _with_default_flags(flags.get("cxx", ()))}
    optimised = re.search(r"(^|\s)-O", os.environ.get("CFLAGS", ""))
    return [*CXX_FLAGS, *([] if optimised else ["-O2"]), *flags]
