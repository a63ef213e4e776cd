"""`Extension`, and the two files that each of our modules consists of."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import setuptools
import torch
from torch.utils import cpp_extension

from interop.abi.names import abi_name
from interop.build.flags import openmp_flags, with_default_flags
from interop.paths import get_include, get_source_dir

BOOTSTRAP = os.path.join(get_source_dir(), "bootstrap.cpp")


class _Bootstrapped(setuptools.Extension):
    """An extension that gets a bootstrap. Cython keeps the class when it makes a new extension of one."""


def Extension(name: str, sources: Sequence[str], *, bootstrap: bool = True, **kwargs: Any) -> setuptools.Extension:  # noqa: N802
    """A `setuptools.Extension` for Cython or C++ that uses torch's tensors.

    Parameters
    ----------
    name
        The module's full dotted name.
    sources
        ``.pyx``, ``.cpp``, ``.cu`` and other files. Whether ``.cu`` files are compiled, the environment variable
        INTEROP_CUDA says: see `interop.build.cuda`. A module whose files are not is left out, and says so when it is
        imported.
    bootstrap
        Whether the module can be imported without ``import torch`` before it, and says which torch it was built for
        when that is not the running one. It then consists of two files, NAME and _NAME_torch_X_Y.
    **kwargs
        As for `setuptools.Extension`. ``extra_compile_args`` may be a dict of lists by compiler (``"cxx"``,
        ``"nvcc"``). C++20 and -O2 are added, unless flags there or in ``CFLAGS`` say otherwise; and, for g++ on Linux,
        -fopenmp, for loops on torch's threads. ``-fno-openmp`` takes it away. Do not link with -fopenmp.
    """
    parts = name.split(".") if isinstance(name, str) else [""]
    if not all((part.isidentifier() and part.isascii()) or part == "*" for part in parts) or parts[-1] == "__init__":
        raise ValueError(
            f"name must be a module's dotted name in ASCII, such as 'package.module', and no __init__, got {name!r}"
        )
    if isinstance(sources, (str, os.PathLike)) or not all(isinstance(s, (str, os.PathLike)) for s in sources):
        raise TypeError(f"sources must be a list of paths, such as ['module.pyx'], got {sources!r}")
    translated = [os.fspath(source) for source in sources if os.fspath(source).endswith((".pyx", ".py"))]
    if len(translated) > 1:
        raise ValueError(
            f"sources must name one Cython file at most, got {', '.join(translated)}: each makes a module of its own, "
            "so give each an Extension"
        )
    if kwargs.get("py_limited_api"):
        raise ValueError("py_limited_api must be left out: torch's C++ interface is not part of Python's stable ABI")
    kwargs["include_dirs"] = [get_include(), *kwargs.get("include_dirs", ())]
    kwargs["extra_compile_args"] = with_default_flags(kwargs.get("extra_compile_args", ()), openmp_flags())
    extension = cpp_extension.CppExtension(name, [os.fspath(source) for source in sources], **kwargs)
    if bootstrap:
        extension.__class__ = _Bootstrapped
    return extension


def halves(extension: setuptools.Extension) -> Iterable[setuptools.Extension]:
    """The bootstrap and the real module of an extension of ours; any other extension as it is.

    Both are ordinary extensions to setuptools, so it builds, copies and records both.
    """
    if not isinstance(extension, _Bootstrapped):
        yield extension
        return
    abi = abi_name(torch.__version__)
    bootstrap = _bootstrap(extension.name, ("INTEROP_ABI", f'"{abi}"'))
    package, dot, module = extension.name.rpartition(".")
    bootstrap.native_name = package + dot + f"_{module}_{abi}"
    extension.module_name = extension.name
    extension.name = bootstrap.native_name
    extension.__class__ = setuptools.Extension  # an editable install finalizes the command twice
    yield bootstrap
    yield extension


def absent(extension: setuptools.Extension, reason: str) -> Iterable[setuptools.Extension]:
    """In place of an extension that is not built, a bootstrap that says so when it is imported."""
    if isinstance(extension, _Bootstrapped):
        text = f"module '{extension.name}' was left out when its project was built: {reason}"
        yield _bootstrap(extension.name, ("INTEROP_ABSENT", json.dumps(text)))


def _bootstrap(name: str, *macros: tuple[str, str]) -> setuptools.Extension:
    return setuptools.Extension(
        name,
        [BOOTSTRAP],
        define_macros=[("INTEROP_MODULE", name.rpartition(".")[2]), *macros],
        extra_compile_args=with_default_flags(()),
        language="c++",
    )
