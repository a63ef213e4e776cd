"""Build Cython modules that use torch's tensors, on top of `torch.utils.cpp_extension`.

A project's whole ``setup.py``::

    from setuptools import setup
    from interop.build import BuildExtension, Extension

    setup(name="cells", ext_modules=[Extension("cells", ["cells.pyx"])], cmdclass={"build_ext": BuildExtension})

Build it with ``pip install --no-build-isolation .``: pip's isolation would compile against another, newer torch.
"""

import functools
import glob
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import setuptools
import setuptools.errors
import torch
from Cython.Compiler.Errors import CompileError
from torch.utils import cpp_extension

from interop.abi.names import PREFIX, abi_name
from interop.codegen.refuse import refuse_in_place_operators, refuse_kernels_with_gil, refuse_unknown_names
from interop.codegen.select import read_source, select, write_whole
from interop.paths import get_include, get_pxd_dir, get_source_dir

__all__ = ["DIRECTIVES", "BuildExtension", "Extension", "cythonize"]

DIRECTIVES = {
    "language_level": 3,
    # None may be passed where a cdef class is declared, and reading .cdata of it would crash.
    "nonecheck": True,
    # Python prints them with "Exception ignored"; where interop/callback.h raises instead, nothing is to be printed.
    "unraisable_tracebacks": False,
}
"""The Cython directives that `cythonize` sets unless told otherwise; a ``# cython:`` line in a source wins."""

CXX_FLAGS = ("-std=c++20",)
"""What torch's headers need: required from torch 2.14 on, accepted since 2.10."""


@functools.cache
def openmp_flags() -> tuple[str, ...]:
    """The flag with which ATen's loops run on several threads. Without it, ATen/Parallel.h makes them serial.

    It is for the compiler and not for the linker: a module that is linked with it asks for a libgomp by name and may
    get the system's, with threads and settings of its own. The functions that the compiled code calls are found in the
    one that torch was linked to. clang's would be those of another library, so it does not get the flag; nor does a
    torch whose threads are not OpenMP's.
    """
    if not torch.backends.openmp.is_available():
        return ()
    command = [*shlex.split(cpp_extension.get_cxx_compiler()), "-dM", "-E", "-x", "c++", os.devnull]
    try:
        macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()  # what is wrong with the compiler, building will say
    return ("-fopenmp",) if "__GNUC__" in macros and "__linux__" in macros and "__clang__" not in macros else ()


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
    if kwargs.get("py_limited_api"):
        raise ValueError("py_limited_api must be left out: torch's C++ interface is not part of Python's stable ABI")
    kwargs["include_dirs"] = [get_include(), *kwargs.get("include_dirs", ())]
    kwargs["extra_compile_args"] = _with_default_flags(kwargs.get("extra_compile_args", ()), openmp_flags())
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
        As for `Cython.Build.cythonize`; ``include_path`` and ``compiler_directives`` add to ours. ``emit_linenums``
        is True unless you say otherwise.
    """
    from Cython.Build import cythonize as cython_cythonize

    if isinstance(modules, (str, setuptools.Extension)):
        modules = [modules]
    extensions = [Extension("*", [module]) if isinstance(module, str) else module for module in modules]
    patterns = [pattern for extension in extensions for pattern in extension.sources if _is_cython(pattern)]
    sources = [source for pattern in patterns for source in glob.glob(os.fspath(pattern), recursive=True)]
    for source in sources:
        refuse_unknown_names(source, get_pxd_dir())
        _refuse_idle_guards(source)
    include_path = [*kwargs.get("include_path", ()), *(folder for e in extensions for folder in e.include_dirs)]
    folder = Path(kwargs.get("build_dir") or "build", "interop-pxd").resolve()
    selection = select(Path(get_pxd_dir()), Path(get_include()), sources, include_path, folder)
    kwargs["include_path"] = [str(selection.pxd), *kwargs.get("include_path", ())]
    kwargs["compiler_directives"] = DIRECTIVES | dict(kwargs.get("compiler_directives") or {})
    # Cython compares dates alone, and the declarations may be older than C++ that was made from others.
    changed = _note_declarations(folder / "used.json", sources, selection.pxd.parent.name)
    with refuse_in_place_operators(), refuse_kernels_with_gil():
        # With line numbers of the .pyx in the C++, errors of g++ name them.
        translated = cython_cythonize(extensions, **{"force": changed, "emit_linenums": True} | kwargs)
    for extension in translated:
        extension.include_dirs = [str(selection.include), *extension.include_dirs]
    return translated


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
            if hasattr(extension, "native_name"):
                native = os.path.basename(self.get_ext_filename(extension.native_name))
                extension.define_macros.append(("INTEROP_NATIVE", f'"{native}"'))
                self._remove_other_abis(extension, native)
        super().build_extensions()

    def _remove_other_abis(self, extension: setuptools.Extension, native: str) -> None:
        """Removes what an earlier build for another torch left, which a wheel would pack as well."""
        module = extension.name.rpartition(".")[2]
        for path in Path(self.get_ext_fullpath(extension.name)).parent.glob(f"_{module}_{PREFIX}*"):
            if path.name != native:
                path.unlink()

    def _define_torch_extension_name(self, extension):
        # TORCH_EXTENSION_NAME is for PyInit_, so it is the module's name and not the file's.
        name, extension.name = extension.name, getattr(extension, "module_name", extension.name)
        super()._define_torch_extension_name(extension)
        extension.name = name

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
    bootstrap = setuptools.Extension(
        extension.name,
        [_BOOTSTRAP],
        define_macros=[("INTEROP_MODULE", module), ("INTEROP_ABI", f'"{abi}"')],
        extra_compile_args=_with_default_flags(()),
        language="c++",
    )
    bootstrap.native_name = package + dot + f"_{module}_{abi}"
    extension.module_name = extension.name
    extension.name = bootstrap.native_name
    extension.__class__ = setuptools.Extension  # an editable install finalizes the command twice
    yield bootstrap
    yield extension


def _translate(extension: setuptools.Extension) -> None:
    """Replaces the Cython sources of an extension by C++, and takes over what their ``# distutils:`` lines say."""
    file_name = extension.name
    extension.name = getattr(extension, "module_name", file_name)
    try:
        (translated,) = cythonize(extension)
    except (CompileError, SyntaxError) as error:
        # Cython has printed what is wrong. Of this class setuptools prints one line, of others a traceback.
        raise setuptools.errors.CompileError(
            f"Cython cannot translate {', '.join(extension.sources)}: {error}"
        ) from error
    for name, value in vars(translated).items():
        if name != "name" and not name.startswith("_"):  # setuptools has its own notes behind an underscore
            setattr(extension, name, value)
    extension.name = file_name


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


_GUARD = re.compile(
    r"^(?P<indent>[ \t]+)(?:cdef[ \t]+)?(?P<module>\w+\.)?"
    r"(?P<kind>NoGradGuard|AutoGradMode|InferenceMode|AutoDispatchBelowAutograd)[ \t]+"
    r"(?P<names>\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?:=(?P<value>[^=].*))?(?:\#.*)?$",
    re.MULTILINE,
)
_NEXT_BLOCK = re.compile(
    r"^[ \t]*(?:async[ \t]+def|def|cpdef|class|cdef[ \t]+class)\b|^[ \t]*cdef\b.*\).*:[ \t]*$", re.MULTILINE
)


def _refuse_idle_guards(source: str) -> None:
    """Raises SyntaxError for a guard that would not do what it says.

    One that is never assigned Cython leaves out without a word. In a generator or a coroutine it would last from the
    first step to the last, over whatever the caller does in between.
    """
    text = read_source(source)
    for guard in _GUARD.finditer(text):
        kind = guard["kind"]
        line = text.count("\n", 0, guard.start()) + 1
        where = (source, line, 1, guard[0])
        before = [block.end() for block in _NEXT_BLOCK.finditer(text, 0, guard.start())]
        after = _NEXT_BLOCK.search(text, guard.end())
        function = text[before[-1] if before else 0 : after.start() if after else None]
        for name in re.findall(r"\w+", guard["names"]):
            if guard["value"] is None and not re.search(rf"(?<![\w.]){name}[ \t]*=[^=]", function):
                written = (guard["module"] or "") + kind
                raise SyntaxError(
                    f"{name!r} is declared but never assigned here, so this guard would do nothing; "
                    f"write: cdef {written} {name} = {written}({'False' if kind == 'AutoGradMode' else ''})",
                    where,
                )
        if re.search(r"\b(?:yield|await)\b", function):
            raise SyntaxError(f"a {kind} cannot stand in a generator or coroutine: its mode would leak out", where)


def _is_cython(source: str) -> bool:
    return os.fspath(source).endswith((".pyx", ".py"))


def _with_default_flags(flags, defaults=()):
    """`flags` behind our defaults, so that they win; an optimisation level in CFLAGS wins over ours too."""
    if isinstance(flags, dict):
        return flags | {"cxx": _with_default_flags(flags.get("cxx", ()), defaults)}
    optimised = re.search(r"(^|\s)-O", os.environ.get("CFLAGS", ""))
    return [*CXX_FLAGS, *defaults, *([] if optimised else ["-O2"]), *flags]
