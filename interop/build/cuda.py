"""CUDA in a build: whether ``.cu`` files are compiled, by which nvcc, for which GPUs, and how.

The environment variable ``INTEROP_CUDA`` selects what a build does with them:

``auto``
    The default: compiles them if torch is a CUDA build and there is an nvcc of the same CUDA major version.
``0``
    Leaves out modules that have them. Importing such a module raises an error that gives the reason.
``1``
    Compiles them, or fails.
``compile``
    Compiles and links them with any torch, to test that they compile. If torch has no CUDA, the modules can be
    imported, and raise `torch.AcceleratorError` when they launch a kernel.

``TORCH_CUDA_ARCH_LIST`` (such as ``"8.0;9.0+PTX"``) chooses the GPUs as for torch's own extensions. Without it, the
build compiles for the GPUs of this machine; if there are none, for those that torch was built for; and if torch has no
CUDA, for nvcc's default.
"""

import contextlib
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import setuptools
import setuptools.errors
import torch
from torch.utils import cpp_extension

from interop.build.flags import CXX_FLAGS
from interop.errors import Error
from interop.processes import ended_with_us
from interop.toolchain import compiler

__all__ = ["Cuda", "NvccError", "compile_cuda", "cuda", "find_ninja", "headers_of", "is_cuda", "wants_cuda"]

MODES = ("auto", "0", "1", "compile")

COMPILER_CACHES = {"ccache", "sccache", "distcc"}
"""Commands that may precede the compiler in CXX. nvcc needs the compiler itself."""

HOST_FLAGS = ("-Xcompiler=-fPIC", "-Xcompiler=-fvisibility=hidden")
"""Flags for the host compiler that nvcc calls. A process has one copy of each visible static variable of a template or
an inline function. Without hidden visibility, a module would share this state with other modules and with earlier
builds of itself."""

_FOR_SHELL = r"""[$`\r\n\0]|\\(?=["\\]|$)"""
"""What nvcc and ninja change. nvcc starts its steps by a shell, and writes a backslash before quotes alone."""

_INCLUDE = re.compile(r'^\s*#include "interop/cuda/', re.MULTILINE)


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit: its folder and its version."""

    home: Path
    version: tuple[int, int]

    @property
    def nvcc(self) -> str:
        return str(self.home / "bin" / "nvcc")


@dataclass(frozen=True)
class Cuda:
    """Whether a build compiles for CUDA, and why."""

    reason: str  # one line without a full stop
    toolkit: Toolkit | None = None  # compiles the ``.cu`` files; None if they are left out

    @property
    def with_torch(self) -> bool:
        """Whether modules can also use torch's own CUDA interface."""
        return self.toolkit is not None and torch.version.cuda is not None

    def __str__(self) -> str:
        return f"CUDA {'on' if self.toolkit else 'off'}: {self.reason}"


def cuda(torch_cuda: str | None = torch.version.cuda) -> Cuda:
    """Whether this build compiles for CUDA. Raise PlatformError, with the fix, if it cannot do what INTEROP_CUDA says.

    `torch_cuda` is the version of CUDA that torch was built for; None for a torch without CUDA.
    """
    mode = os.environ.get("INTEROP_CUDA") or "auto"
    if mode not in MODES:
        raise setuptools.errors.PlatformError(f"INTEROP_CUDA must be one of {', '.join(MODES)}, got {mode!r}")
    if mode == "0":
        return Cuda("INTEROP_CUDA=0")
    has = f"torch {torch.__version__} is built " + (f"for CUDA {torch_cuda}" if torch_cuda else "without CUDA")
    if torch_cuda is None and mode != "compile":
        return _off(mode, f"{has}; install a torch with CUDA, or compile .cu files anyway with INTEROP_CUDA=compile")
    toolkit = find_toolkit()
    if isinstance(toolkit, str):
        return _off(mode, toolkit)
    found = f"nvcc {_text(toolkit.version)} in {toolkit.home}"
    if torch_cuda is None:
        return Cuda(f"{found}, only for compiling, because {has}", toolkit)
    if int(torch_cuda.partition(".")[0]) != toolkit.version[0]:
        return _off(mode, f"{has}, but {found} has another major version; set CUDA_HOME to a CUDA {torch_cuda}")
    return Cuda(f"{found}, {has}", toolkit)


def _off(mode: str, reason: str) -> Cuda:
    if mode == "auto":
        return Cuda(reason)
    raise setuptools.errors.PlatformError(f"INTEROP_CUDA={mode}, but {reason}")


def find_toolkit() -> Toolkit | str:
    """The toolkit that CUDA_HOME or CUDA_PATH names, or that of the nvcc on PATH; or an error message."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            found = _toolkit(str(Path(os.environ[variable], "bin", "nvcc")))
            return f"{found}; correct {variable}, or unset it" if isinstance(found, str) else found
    command = shutil.which("nvcc")
    if command is None:
        return "there is no nvcc on PATH; install CUDA's compiler and add it to PATH, or set CUDA_HOME"
    return _toolkit(command)


@functools.cache
def _toolkit(command: str) -> Toolkit | str:
    try:
        version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
        # nvcc may be a script that starts another nvcc elsewhere, which prints its folder only when it compiles.
        null = os.devnull
        steps = subprocess.run(
            [command, "--dryrun", "-x", "cu", "-c", null, "-o", null], capture_output=True, text=True, check=True
        ).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{command} does not run ({_first_line(error)})"
    release = re.search(r"release (\d+)\.(\d+)", version)
    top = re.search(r"^#\$ TOP=(.+)$", steps, re.MULTILINE)
    if not release or not top:
        return f"{command} is not nvcc"
    return Toolkit(Path(os.path.normpath(top[1].strip())), (int(release[1]), int(release[2])))


def is_cuda(source: str) -> bool:
    """Whether a source is for nvcc."""
    return os.fspath(source).endswith(".cu")


def wants_cuda(extension: setuptools.Extension) -> bool:
    """Whether an extension, translated to C++, is compiled with CUDA if there is a toolkit.

    An extension with ``.cu`` sources is. An extension that only includes our CUDA headers, to get streams from torch,
    builds with any torch, and is compiled with CUDA if torch has it.
    """
    return any(map(is_cuda, extension.sources)) or (
        torch.version.cuda is not None
        and any(
            _INCLUDE.search(Path(source).read_text(encoding="utf-8", errors="replace"))
            for source in extension.sources
            if os.path.exists(source)
        )
    )


class NvccError(Error, setuptools.errors.CompileError):
    """nvcc failed; `output` is its output, or empty if that was printed already."""

    def __init__(self, message: str, output: str = ""):
        super().__init__(message)
        self.output = output


def compile_cuda(
    extension: setuptools.Extension, state: Cuda, folder: Path, verbose: bool = True, quiet: bool = False
) -> None:
    """Compile the ``.cu`` sources of `extension` into `folder`, and add their objects to its link.

    nvcc's output is printed; `quiet` keeps it for the NvccError instead.

    ninja compiles in parallel, and only files that have changed. torch's own build command could do the same, but it
    needs a torch with CUDA, and sets macros that remove the operators of half precision.
    """
    sources = [source for source in extension.sources if is_cuda(source)]
    missing = [source for source in sources if not os.path.exists(source)]
    if missing:
        raise setuptools.errors.CompileError(f"{missing[0]}, a source of {extension.name}, does not exist")
    toolkit = state.toolkit
    if toolkit is None:
        raise setuptools.errors.CompileError(f"there is no CUDA toolkit to compile {extension.name} with: {state}")
    if state.with_torch:
        extension.define_macros.append(("INTEROP_WITH_CUDA", None))
        extension.include_dirs.append(str(toolkit.home / "include"))
        extension.libraries += ["c10_cuda", "torch_cuda"]
    if not sources:
        if state.with_torch:
            _link_runtime(extension, toolkit, with_torch=True)
        return
    objects = [folder / Path(source).with_suffix(".cu.o").name for source in sources]
    if len(set(objects)) != len(objects):
        raise setuptools.errors.CompileError(f"the .cu files of {extension.name} must have different names")
    _run_ninja(_rules(extension, toolkit, sources, objects), folder, verbose, quiet)
    extension.sources = [source for source in extension.sources if not is_cuda(source)]
    extension.extra_objects = [*extension.extra_objects, *map(str, objects)]
    extension.depends = [*extension.depends, *map(str, objects)]  # otherwise setuptools would not link again
    _link_runtime(extension, toolkit, state.with_torch)


def _link_runtime(extension: setuptools.Extension, toolkit: Toolkit, with_torch: bool) -> None:
    """Link CUDA's runtime: the one that torch has loaded, or a static copy if torch has none."""
    for folder in ("lib64", "lib"):
        extension.library_dirs.append(str(toolkit.home / folder))
    extension.libraries += ["cudart"] if with_torch else ["cudart_static", "dl", "rt", "pthread"]


def _rules(extension: setuptools.Extension, toolkit: Toolkit, sources: Sequence[str], objects: Sequence[Path]) -> str:
    """The text of the build.ninja."""
    flags = [*CXX_FLAGS, "-O3", *HOST_FLAGS, "--expt-relaxed-constexpr", *_arch_flags(toolkit, extension)]
    if os.environ.get("CXX"):
        words = [word for word in compiler() if os.path.basename(word) not in COMPILER_CACHES]
        flags.append(f"-ccbin={words[0]}")
    flags += [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros]
    flags += [f"-I{os.path.abspath(folder)}" for folder in extension.include_dirs]
    flags += _extra_flags(extension)
    lines = [
        "ninja_required_version = 1.3",
        f"nvcc = {_escape(shlex.quote(toolkit.nvcc))}",
        f"flags = {_escape(shlex.join(flags))}",
        "rule nvcc",
        "  command = $nvcc $flags -MD -MF $out.d -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        *(
            f"build {_escape_path(output)}: nvcc {_escape_path(os.path.abspath(source))}"
            for source, output in zip(sources, objects, strict=True)
        ),
    ]
    files = [*map(os.path.abspath, sources), *map(str, objects)]
    folders = [toolkit.nvcc, *map(os.path.abspath, extension.include_dirs)]
    for words, wrong, reason in (
        (files, r"\|", "ninja would interpret it"),
        ([*files, *folders, *flags], _FOR_SHELL, "nvcc's shell would interpret it"),
        # A build would not notice a change of a header.
        ([*files, *folders], r"\\", "nvcc writes / for it in its list of headers"),
    ):
        for word in words:
            if found := re.search(wrong, word):
                raise setuptools.errors.CompileError(
                    f"paths and flags for nvcc must not contain {found[0]!r}, got {word!r}: {reason}"
                )
    return "\n".join(lines) + "\n"


def _extra_flags(extension: setuptools.Extension) -> list[str]:
    extra = extension.extra_compile_args
    return list(extra.get("nvcc", ())) if isinstance(extra, dict) else []


def headers_of(folder: Path) -> set[str]:
    """The files included by the sources that `compile_cuda` has compiled into `folder`."""
    command = [_ninja(), "-f", str(folder / "build.ninja"), "-t", "deps"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return {line.strip() for line in done.stdout.splitlines() if line.startswith(" ")}


def _run_ninja(rules: str, folder: Path, verbose: bool, quiet: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "build.ninja"
    if not path.exists() or path.read_text(encoding="utf-8") != rules:
        path.write_text(rules, encoding="utf-8")
    command = [_ninja(), "-f", str(path), *(["-v"] if verbose else [])]
    if os.environ.get("MAX_JOBS", "").isdigit():
        command += ["-j", os.environ["MAX_JOBS"]]
    sys.stdout.flush()
    stdout, stderr = (subprocess.PIPE, subprocess.STDOUT) if quiet else (None, None)
    with ended_with_us() as mark:
        done = subprocess.run(
            command, cwd=folder, stdout=stdout, stderr=stderr, env=os.environ | mark, text=True, errors="replace"
        )
    if done.returncode:
        raise NvccError("nvcc failed" + ("" if quiet else "; its output is above"), done.stdout or "")


def find_ninja() -> str | None:
    """The ninja that pip installed beside this Python, which may be missing from PATH; otherwise the one on PATH."""
    with contextlib.suppress(ImportError):
        import ninja

        if ninja.BIN_DIR:
            return os.path.join(ninja.BIN_DIR, "ninja")
    return shutil.which("ninja")


def _ninja() -> str:
    found = find_ninja()
    if found is None:
        raise setuptools.errors.PlatformError("compiling .cu files needs ninja; run: pip install ninja")
    return found


def _arch_flags(toolkit: Toolkit, extension: setuptools.Extension) -> list[str]:
    """The -gencode flags, checked against what this nvcc can compile for."""
    given = _extra_flags(extension)
    if any(re.match(r"-gencode|--generate-code|-arch\b|--gpu-architecture", flag) for flag in given):
        return []
    named = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
    if named and named != "native":
        try:
            flags = cpp_extension._get_cuda_arch_flags()
        except (ValueError, IndexError) as error:
            raise setuptools.errors.CompileError(
                f"TORCH_CUDA_ARCH_LIST={named!r}: {error}; write capabilities, such as 8.0;9.0+PTX"
            ) from error
        _check_supported(flags, toolkit, f"TORCH_CUDA_ARCH_LIST={named!r}")
        return flags
    if torch.cuda.is_available():
        found = {torch.cuda.get_device_capability(index) for index in range(torch.cuda.device_count())}
        flags = [_gencode(f"{major}{minor}") for major, minor in sorted(found)]
        _check_supported(flags, toolkit, "the GPU of this machine")
        return flags
    if torch.version.cuda is None:
        return []
    # The GPUs that torch has machine code for and this nvcc supports.
    supported = _supported(toolkit)
    built = sorted(set(re.findall(r"sm_(\d+\w?)", torch._C._cuda_getArchFlags() or "")), key=_number)
    chosen = [arch for arch in built if arch in supported]
    # Add PTX of the last, which the driver compiles for later GPUs.
    return [*map(_gencode, chosen), *(f"-gencode=arch=compute_{arch},code=compute_{arch}" for arch in chosen[-1:])]


def _gencode(arch: str) -> str:
    return f"-gencode=arch=compute_{arch},code=sm_{arch}"


def _check_supported(flags: Sequence[str], toolkit: Toolkit, who: str) -> None:
    supported = _supported(toolkit)
    missing = sorted({arch for flag in flags for arch in re.findall(r"compute_(\d+\w?)", flag)} - supported)
    if missing:
        accepted = ", ".join(sorted(supported, key=_number))
        raise setuptools.errors.CompileError(
            f"{who} needs {', '.join(f'sm_{arch}' for arch in missing)}, which nvcc {_text(toolkit.version)} cannot "
            f"compile for; it supports {accepted}. Set TORCH_CUDA_ARCH_LIST, or CUDA_HOME to another toolkit"
        )


@functools.cache
def _supported(toolkit: Toolkit) -> set[str]:
    listed = subprocess.run([toolkit.nvcc, "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout
    plain = set(re.findall(r"compute_(\d+\w?)", listed))
    # Targets for one architecture alone (a), and for a family of them (f).
    return (
        plain
        | {f"{arch}a" for arch in plain if _number(arch) >= 90}
        | {f"{arch}f" for arch in plain if _number(arch) >= 100}
    )


def _number(arch: str) -> int:
    return int(re.findall(r"\d+", arch)[0])


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _first_line(error: Exception) -> str:
    return (getattr(error, "stderr", None) or str(error)).strip().partition("\n")[0]


def _escape(text: str) -> str:
    return text.replace("$", "$$")


def _escape_path(path: os.PathLike[str] | str) -> str:
    return _escape(str(path)).replace(" ", "$ ").replace(":", "$:")
