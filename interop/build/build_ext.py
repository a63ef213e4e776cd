"""`BuildExtension`: the command build_ext."""

import contextlib
import copy
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import setuptools
import setuptools.errors
import torch
from setuptools.command import egg_info
from torch.utils import cpp_extension

from interop.abi.names import PREFIX
from interop.build.compiler_errors import errors_once
from interop.build.cuda import Cuda, compile_cuda, cuda, find_ninja, is_cuda, wants_cuda
from interop.build.extension import BOOTSTRAP, cythonize, placeholder, split
from interop.cython.declared_names import OURS
from interop.cython.dependencies import cimports
from interop.cython.extensions import is_cython
from interop.cython.translate import TranslationError
from interop.paths import get_include
from interop.processes import ended_with_us
from interop.stable_abi import StableABI, of_macros, release_of


class BuildExtension(cpp_extension.BuildExtension):
    """torch's build_ext, which also cythonizes with our `cythonize` and adds the bootstrap to our extensions.

    It compiles ``.cu`` sources itself, as the environment variable INTEROP_CUDA says: see `interop.build.cuda`.

    It sets the tag and requirements of a wheel with stable modules. If all modules use a Limited API, the tag names the
    newest, such as cp312-abi3. The wheel requires the newest torch that any module names, unless the project itself
    requires torch.

    Its option ``parallel`` is the number of extensions that it builds in parallel; they share the processors.
    """

    # An editable install initialises the command again. By this name, or else by the name of the class, setuptools then
    # looks up the options that setup.py and setup.cfg set.
    command_name = "build_ext"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with _environment(_path_to_ninja()):  # torch decides here whether it uses ninja
            super().__init__(*args, **kwargs)

    def finalize_options(self) -> None:
        extensions = []
        for extension in self.distribution.ext_modules or []:
            # Only Cython knows which modules a pattern stands for. Other sources are translated when they are built.
            extensions += cythonize(extension) if "*" in extension.name else [extension]
        self._cuda: Cuda | None = None
        with_cuda = [extension for extension in extensions if any(map(is_cuda, extension.sources))]
        self._left_out = with_cuda if with_cuda and not self._state().toolkit else []
        for extension in self._left_out:
            print(f"interop: module {extension.name!r} is left out", flush=True)
        self.distribution.ext_modules = [
            part
            for extension in extensions
            for part in (
                placeholder(extension, str(self._state())) if extension in self._left_out else split(extension)
            )
        ]
        abis = [of_macros(extension.define_macros) for extension in self.distribution.ext_modules]
        _tag_wheel(self.distribution, abis)
        _require_torch(self.distribution, [abi for abi in abis if abi])
        given: str | None = self.build_temp  # type: ignore[has-type]  # setuptools'
        super().finalize_options()
        # Nothing in a command or an object names the torch that it was compiled for, and its headers may be old files.
        if given is None:
            self.build_temp = os.path.join(str(self.build_temp), f"torch-{torch.__version__}")  # type: ignore[has-type]
        # Ninja knows what has changed. Without it, setuptools would keep a bootstrap that was made for another torch.
        self.force = True

    def build_extensions(self) -> None:
        for extension in self.extensions:
            if any(map(is_cython, extension.sources)):
                _translate(extension)
            # Ninja runs in a different folder from setup.py.
            extension.include_dirs = [os.path.abspath(folder) for folder in extension.include_dirs]
            if wants_cuda(extension) and self._state().toolkit:
                compile_cuda(extension, self._state(), Path(self.build_temp, "cuda", extension.name).resolve())
            if hasattr(extension, "native_name"):
                name = self.get_ext_filename(extension.native_name)  # type: ignore[no-untyped-call]  # torch's
                native = os.path.basename(name)
                extension.define_macros.append(("INTEROP_NATIVE", f'"{native}"'))
                self._remove_other_abis(extension, native)
            if self.use_ninja and self._must_not_use_ninja(extension):
                self.use_ninja = False
                # torch gives CFLAGS to C++ as well. Without ninja, setuptools compiles, which does not.
                compiler: Any = self.compiler
                if hasattr(compiler, "compiler_so_cxx"):
                    compiler.compiler_so_cxx = [compiler.compiler_so_cxx[0], *compiler.compiler_so[1:]]
        if not self.use_ninja:
            for extension in self.extensions:
                _choose_c_standard(extension)
        command: Any = self.get_finalized_command("build")
        with (
            errors_once(Path(command.build_base)) as held,
            ended_with_us() as mark,
            _environment(mark | self._jobs() | _path_to_ninja()),
        ):
            # Ninja holds back the output of each command itself. Older releases of setuptools have only `spawn`.
            if hasattr(self.compiler, "call"):
                self.compiler.call = held(self.compiler.call)
            super().build_extensions()

    def build_extension(self, extension: setuptools.Extension) -> None:
        """Build one extension, which other threads may do at the same time with others."""
        command: Any = self
        if self.parallel:
            # torch writes build.ninja, always by this name, so each extension needs its own folder. A copy has its own
            # `build_temp`; the compiler is the same.
            command = copy.copy(self)
            command.build_temp = os.path.join(self.build_temp, extension.name)
        super(BuildExtension, command).build_extension(extension)

    def _must_not_use_ninja(self, extension: setuptools.Extension) -> bool:
        """Whether ninja would read a path or flag differently, perhaps as another path: torch escapes only spaces."""
        files = map(os.path.abspath, (self.build_temp, *extension.sources))
        folders = (*extension.include_dirs, *self.compiler.include_dirs)
        defined = (*self.compiler.macros, *extension.define_macros, *((name,) for name in extension.undef_macros))
        macros = (str(part) for macro in defined for part in macro)
        extra: Any = extension.extra_compile_args
        flags = [flag for listed in extra.values() for flag in listed] if isinstance(extra, dict) else extra
        return any(set("$|:\n\r") & set(one) for one in files) or any(
            set("$\n\r") & set(one) for one in (*folders, *macros, *flags, *self.compiler.compiler_so[1:])
        )

    def _jobs(self) -> dict[str, str]:
        """The number of files that ninja compiles in parallel, if several extensions share the processors."""
        if not self.parallel or "MAX_JOBS" in os.environ:
            return {}
        processors = os.cpu_count() or 1
        modules = sum(not hasattr(extension, "native_name") for extension in self.extensions)  # a bootstrap is small
        at_once = min(processors if self.parallel is True else self.parallel, modules)
        return {"MAX_JOBS": str(max(1, processors // max(1, at_once)))}

    def _state(self) -> Cuda:
        """How this build handles CUDA, determined and printed when the first extension needs it."""
        if self._cuda is None:
            self._cuda = cuda()
            print(f"interop: {self._cuda}", flush=True)
        return self._cuda

    def _remove_other_abis(self, extension: setuptools.Extension, native: str) -> None:
        """Remove files of an earlier build for another torch, because a wheel would include them."""
        module = extension.name.rpartition(".")[2]
        for path in Path(self.get_ext_fullpath(extension.name)).parent.glob(f"_{module}_{PREFIX}*"):
            if path.name != native:
                path.unlink()

    def _add_compile_flag(self, extension: setuptools.Extension, flag: str) -> None:
        # torch's flag, for the oldest CPython that torch supports, would override the requested one.
        if not flag.startswith("-DPy_LIMITED_API="):
            super()._add_compile_flag(extension, flag)

    def _define_torch_extension_name(self, extension: setuptools.Extension) -> None:
        # TORCH_EXTENSION_NAME is part of PyInit_NAME, so it must be the module's name, not the file's.
        name, extension.name = extension.name, getattr(extension, "module_name", extension.name)
        super()._define_torch_extension_name(extension)
        extension.name = name

    def get_source_files(self) -> list[str]:
        """The sources for the project's sdist: without our bootstrap, with the sources of modules left out."""
        left_out = [source for extension in self._left_out for source in extension.sources]
        return [source for source in super().get_source_files() if source != BOOTSTRAP] + left_out


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables while the context lasts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _path_to_ninja() -> dict[str, str]:
    """A PATH with pip's ninja, if PATH has none: torch looks nowhere else, and PATH often lacks pip's folder."""
    found = find_ninja()
    if found is None or shutil.which("ninja"):
        return {}
    return {"PATH": os.pathsep.join([os.environ.get("PATH") or os.defpath, os.path.dirname(found)])}


def _choose_c_standard(extension: setuptools.Extension) -> None:
    """Replace a standard of C++, which clang rejects for C: without ninja, setuptools compiles C as C.

    Without any standard, torch would add that of C++ again.
    """
    flags: Any = extension.extra_compile_args
    flags = flags.setdefault("cxx", []) if isinstance(flags, dict) else flags
    if all(source.endswith(".c") for source in extension.sources):
        flags[:] = [flag for flag in flags if not flag.startswith(("-std=c++", "-std=gnu++"))]
        if not any(flag.startswith("-std=") for flag in flags):
            flags.append("-std=gnu17")


def _translate(extension: setuptools.Extension) -> None:
    """Replace the Cython sources of an extension with C++, and apply their ``# distutils:`` lines."""
    file_name = extension.name
    extension.name = getattr(extension, "module_name", file_name)
    _check_maker(extension)
    try:
        (translated,) = cythonize(extension)
    except TranslationError as error:
        # Cython has printed the errors. setuptools prints one line for this class, and a traceback for others.
        raise setuptools.errors.CompileError(
            f"Cython cannot translate {', '.join(extension.sources)}: {error}"
        ) from error
    for name, value in vars(translated).items():
        if name != "name" and not name.startswith("_"):  # setuptools keeps its own state under names with an underscore
            setattr(extension, name, value)
    extension.name = file_name


def _check_maker(extension: setuptools.Extension) -> None:
    """Raise SetupError for an extension that needs our headers and flags, and was made without them."""
    if get_include() in extension.include_dirs:
        return
    for source in filter(is_cython, extension.sources):
        needed = sorted({*cimports(source)} & {*OURS}) if os.path.isfile(source) else ()
        if needed:
            raise setuptools.errors.SetupError(
                f"module {extension.name!r} cimports {', '.join(needed)}, but is a setuptools.Extension without the "
                "headers and flags that this needs: make it with interop.build.Extension"
            )


def _tag_wheel(distribution: setuptools.Distribution, abis: list[StableABI | None]) -> None:
    pythons = [int(abi.python[3:]) for abi in abis if abi and abi.python]
    if pythons and len(pythons) == len(abis):
        wheel: Any = distribution.get_command_obj("bdist_wheel")
        wheel.py_limited_api = wheel.py_limited_api or f"cp3{max(pythons)}"


def _require_torch(distribution: setuptools.Distribution, abis: list[StableABI]) -> None:
    """Add torch to the project's requirements, if the project leaves them to its build."""
    if not abis or any(re.match(r"torch(?![\w.-])", text, re.IGNORECASE) for text in distribution.install_requires):
        return
    newest = max((abi.torch for abi in abis), key=release_of)
    if not _leaves_dependencies_to_the_build(Path(distribution.src_root or "", "pyproject.toml")):
        print(f"interop: add 'torch>={newest}' to the dependencies in pyproject.toml", flush=True)
        return
    distribution.install_requires = [*distribution.install_requires, f"torch>={newest}"]
    metadata: Any = distribution.metadata
    metadata.install_requires = distribution.install_requires
    command: Any = distribution.get_command_obj("egg_info", create=False)
    # egg_info writes the metadata before it requests our sources and so runs this code.
    if command and command.egg_info and os.path.exists(os.path.join(command.egg_info, "PKG-INFO")):
        for name, write in (("PKG-INFO", egg_info.write_pkg_info), ("requires.txt", egg_info.write_requirements)):
            write(command, name, os.path.join(command.egg_info, name))


def _leaves_dependencies_to_the_build(pyproject: Path) -> bool:
    """Whether the build may set the dependencies: not if pyproject.toml fixes them, even if it states none."""
    try:
        project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project")
    except OSError:
        return True
    return project is None or "dependencies" in project.get("dynamic", ())
