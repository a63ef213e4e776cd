"""`Extension`, and its split into the two files of a module."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import setuptools
import torch
from torch.utils import cpp_extension

from interop.abi.names import abi_name
from interop.build.cuda import is_cuda
from interop.build.flags import openmp_flags, with_default_flags
from interop.cython.extensions import translate_extensions
from interop.cython.translate import check_name
from interop.paths import get_include, get_source_dir, get_stable_dir, get_stable_library
from interop.stable_abi import VISIBILITY, StableABI, export_flag, stable_abi
from interop.toolchain import find_torch

BOOTSTRAP = os.path.join(get_source_dir(), "bootstrap.cpp")


# These are classes, because Cython keeps an extension's class but not its attributes in a copy.
class _Bootstrapped(setuptools.Extension):
    """An extension that gets a bootstrap."""


class _FreeThreaded(setuptools.Extension):
    """An extension that is translated with these directives."""

    directives: ClassVar[dict[str, Any]] = {"freethreading_compatible": True}


class _BootstrappedFreeThreaded(_Bootstrapped, _FreeThreaded):
    """Both of these."""


def Extension(  # noqa: N802
    name: str,
    sources: Sequence[str],
    *,
    bootstrap: bool = True,
    stable: str | None = None,
    py_limited_api: str | None = None,
    free_threaded: bool = False,
    **kwargs: Any,
) -> setuptools.Extension:
    """A `setuptools.Extension` for Cython or C++ that uses torch's tensors.

    Parameters
    ----------
    name
        The module's full dotted name.
    sources
        ``.pyx``, ``.cpp``, ``.cu`` and other files. The environment variable INTEROP_CUDA decides whether ``.cu`` files
        are compiled: see `interop.build.cuda`. If they are not, the module is left out, and its import raises an error
        that says so.
    bootstrap
        Whether the module gets a bootstrap. Its import then needs no ``import torch`` before it. If another torch runs,
        the import raises an error that names the torch that the module was built for. The module consists of two files,
        NAME and _NAME_torch_X_Y.
    stable
        The oldest release of torch that the module runs with, such as ``"2.11"``. The module then consists of one file
        that is linked to no library of torch, and runs with that release and later ones. It needs no bootstrap, nor
        this package at run time. It can cimport the names in `torch.stable`, which are also in `torch` and `ATen`.
    py_limited_api
        The oldest CPython that a stable module runs with, such as ``"cp312"``. Its file, NAME.abi3.so, runs with that
        release and later ones. Without this argument, it runs only with the CPython that builds it.
    free_threaded
        Whether the module declares that it needs no GIL: Cython's directive ``freethreading_compatible``. Without the
        declaration, a free-threaded Python enables the GIL when it imports the module. The declaration promises that
        the module guards shared state; Cython does not check that. It has no effect in a Python with a GIL.
    **kwargs
        As for `setuptools.Extension`. ``extra_compile_args`` may be a dict of lists by compiler (``"cxx"``,
        ``"nvcc"``). C++20 and -O2 are added, unless flags there or in ``CFLAGS`` override them. For g++ on Linux,
        -fopenmp is added too, so that prange uses torch's threads; ``-fno-openmp`` disables it. Do not link with
        -fopenmp.
    """
    check_name(name)
    if isinstance(sources, (str, os.PathLike)) or not all(isinstance(s, (str, os.PathLike)) for s in sources):
        raise TypeError(f"sources must be a list of paths, such as ['module.pyx'], got {sources!r}")
    translated = [os.fspath(source) for source in sources if os.fspath(source).endswith((".pyx", ".py"))]
    if len(translated) > 1:
        raise ValueError(
            f"sources must have at most one Cython file, got {', '.join(translated)}: each becomes its own module, "
            "so give each an Extension"
        )
    if free_threaded and not translated:
        raise ValueError(
            "free_threaded needs a Cython source; a module that is only C++ declares it itself: "
            "PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED)"
        )
    abi = stable_abi(stable, py_limited_api)
    if abi:
        extension = _stable_extension(name, [os.fspath(source) for source in sources], abi, kwargs)
        if free_threaded:
            extension.__class__ = _FreeThreaded
        return extension
    kwargs["include_dirs"] = [get_include(), *kwargs.get("include_dirs", ())]
    kwargs["extra_compile_args"] = with_default_flags(kwargs.get("extra_compile_args", ()), openmp_flags())
    extension = cpp_extension.CppExtension(name, [os.fspath(source) for source in sources], **kwargs)
    if bootstrap or free_threaded:
        extension.__class__ = (
            _BootstrappedFreeThreaded if bootstrap and free_threaded else _Bootstrapped if bootstrap else _FreeThreaded
        )
    return extension


def _stable_extension(name: str, sources: list[str], abi: StableABI, kwargs: dict[str, Any]) -> setuptools.Extension:
    cuda = [source for source in sources if is_cuda(source)]
    if cuda:
        raise ValueError(
            f"sources must have no .cu files with stable, which does not support them yet, got {', '.join(cuda)}; "
            "put them in an Extension of their own, without stable"
        )
    torch_include = find_torch().include_dirs[0]  # type: ignore[union-attr]  # it is imported above
    ours = [os.path.join(get_stable_dir(), "include"), get_include()]  # the order matters: some headers share a name
    kwargs["include_dirs"] = [*ours, *kwargs.get("include_dirs", ()), torch_include]
    kwargs["define_macros"] = [*abi.macros, *kwargs.get("define_macros", ())]
    kwargs["extra_compile_args"] = with_default_flags(kwargs.get("extra_compile_args", ()), [VISIBILITY])
    kwargs["extra_link_args"] = [export_flag(), *kwargs.get("extra_link_args", ())]
    kwargs["extra_objects"] = [*kwargs.get("extra_objects", ()), get_stable_library()]
    kwargs["language"] = "c++"
    return setuptools.Extension(name, sources, py_limited_api=abi.python is not None, **kwargs)


def cythonize(modules: Iterable[setuptools.Extension | str] | str, **options: Any) -> list[setuptools.Extension]:
    """Translate the ``.pyx`` sources of `modules` to C++, with our declarations on the path and `DIRECTIVES` set.

    Existing C++ from the same files and options is reused.

    Parameters
    ----------
    modules
        Extensions, or paths and glob patterns of ``.pyx`` files.
    include_path
        Folders with further ``.pxd`` files; the extensions' include folders are searched too.
    compiler_directives
        Cython directives, beside `DIRECTIVES`.
    build_dir
        The folder for the C++. Without it, the C++ is written beside its source.
    nthreads
        Number of processes that translate in parallel.
    force
        Translate even if nothing has changed.
    quiet
        Print neither progress nor Cython's messages.
    exclude, aliases
        As for `Cython.Build.cythonize`.
    **options
        Further options of Cython's compiler, such as ``annotate``. ``emit_linenums`` is True by default.

    Returns
    -------
    list of setuptools.Extension
        Extensions with C++ in place of the ``.pyx``, with the include folders that it needs and the settings of
        ``# distutils:`` lines.

    Raises
    ------
    TranslationError
        If a source is wrong. It is a `SyntaxError`.
    """
    listed = [modules] if isinstance(modules, (str, setuptools.Extension)) else modules
    return translate_extensions([Extension("*", [one]) if isinstance(one, str) else one for one in listed], **options)


def apply_distutils_lines(info: Any, source: str, extension: setuptools.Extension) -> None:
    """Apply the ``# distutils:`` lines of `source` to an extension that does not come from a setup.py.

    Paths in these lines are relative to the source.
    """
    for line in ("name", "language", "depends", "np_pythran"):  # already settled, or for setup.py
        info.values.pop(line, None)
    here = os.path.dirname(source)
    for key in ("sources", "include_dirs", "library_dirs", "extra_objects"):
        if key in info.values:
            info.values[key] = [os.path.join(here, path) for path in info.values[key]]
    extra = extension.extra_compile_args
    if isinstance(extra, dict) and "extra_compile_args" in info.values:
        extra["cxx"] = [*extra.get("cxx", ()), *info.values.pop("extra_compile_args")]
    info.apply(extension)


def split(extension: setuptools.Extension) -> Iterable[setuptools.Extension]:
    """The bootstrap and the native module of an extension of ours; any other extension unchanged.

    setuptools sees two ordinary extensions, so it builds, copies and records both.
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
    # Mark it as split, because an editable install finalizes the command twice.
    extension.__class__ = _FreeThreaded if isinstance(extension, _FreeThreaded) else setuptools.Extension
    yield bootstrap
    yield extension


def placeholder(extension: setuptools.Extension, reason: str) -> Iterable[setuptools.Extension]:
    """The replacement for an extension that is not built: a bootstrap whose import raises an error that says so."""
    if isinstance(extension, _Bootstrapped):
        text = f"module '{extension.name}' was left out when its project was built: {reason}"
        yield _bootstrap(extension.name, ("INTEROP_ABSENT", json.dumps(text)))


def _bootstrap(name: str, *macros: tuple[str, str]) -> setuptools.Extension:
    last = name.rpartition(".")[2]
    return setuptools.Extension(
        name,
        [BOOTSTRAP],
        define_macros=[("INTEROP_INIT", f"PyInit_{last}"), ("INTEROP_MODULE", f'"{last}"'), *macros],
        extra_compile_args=with_default_flags(()),
        language="c++",
    )
