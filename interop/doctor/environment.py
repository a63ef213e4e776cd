"""Check the installed software, and whether it fits together."""

import importlib
import importlib.metadata
import logging
import os
import platform
import re
import shutil
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from interop.doctor.finding import Finding, ok, problem, warning
from interop.doctor.folder import current_folder
from interop.paths import get_include, get_pxd_dir
from interop.toolchain import CXX_FLAGS, MINIMUM_TORCH, compiler, find_torch, is_gcc, predefined_macros

__all__ = ["SECTIONS", "build", "gil", "loaded", "loaded_libraries", "openmp_finding", "python", "tools", "torch"]

MINIMUM = {"Cython": (3, 1), "numpy": (2,), "setuptools": (77,)}
MINIMUM_PYTHON = (3, 11)

REBUILD = (
    "pip install --no-build-isolation --force-reinstall --no-deps . in the checkout of torch-interop (-e . if it is "
    "used from there), then rebuild the modules that cimport it"
)
_OPENMP = re.compile(r"lib(?:gomp|omp|iomp5)[-.\w]*\.so[.\d]*$")


def python() -> list[Finding]:
    """Python and the packages that builds need."""
    kind = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    version = f"{platform.python_version()}{kind}, {sys.executable}, its modules end in {EXTENSION_SUFFIXES[0]}"
    header = Path(sysconfig.get_path("include"), "Python.h")
    findings = []
    if sys.implementation.name != "cpython" or sys.version_info < MINIMUM_PYTHON:
        wrong = f"{platform.python_implementation()} {version}"
        findings.append(problem("Python", wrong, f"use CPython {_text(MINIMUM_PYTHON)} or newer"))
    elif not header.is_file():
        fix = f"install Python's headers: apt-get install python{_text(sys.version_info[:2])}-dev, or the like"
        findings.append(problem("Python", f"{version}, without {header}, so nothing can be compiled", fix))
    else:
        findings.append(ok("Python", version))
    for name, minimum in MINIMUM.items():
        found = _version(name)
        install = f"pip install '{name}>={_text(minimum)}'"
        if found is None:
            findings.append(problem(name, "is not installed", install))
        elif _numbers(found) < minimum:
            findings.append(problem(name, f"{found}, but {_text(minimum)} or newer is required", install))
        else:
            findings.append(ok(name, found))
    return findings


def tools() -> list[Finding]:
    """The compiler and ninja."""
    return [_compiler(), _ninja()]


def _compiler() -> Finding:
    command = " ".join(compiler())
    macros = predefined_macros()
    if macros is None:
        text = f"{command} does not run" + (" (the environment variable CXX names it)" if "CXX" in os.environ else "")
        fix = "install one, for example with apt-get install g++, or set CXX to another compiler"
        return problem("compiler", text, fix)
    name = f"{command}, {'clang' if '__clang__' in macros else 'g++'} {macros.get('__VERSION__', '?').strip(chr(34))}"
    standard = (predefined_macros(*CXX_FLAGS) or {}).get("__cplusplus", "")
    if standard < "2020":  # or the compiler does not know the flag
        fix = "torch's headers need C++20: install g++ 11 or clang 14, or newer, and set CXX to it"
        return problem("compiler", f"{name} has no C++20", fix)
    limits = "" if is_gcc() else "; with it prange uses one thread, and load precompiles no headers"
    return ok("compiler", f"{name}, C++20 (__cplusplus {standard}){limits}")


def _ninja() -> Finding:
    found = shutil.which("ninja")
    if found is None and _version("ninja") is None:
        text = "is not installed, so files are compiled one after another, and .cu files not at all"
        return warning("ninja", text, "pip install ninja")
    return ok("ninja", found or f"{_version('ninja')}, from pip")


def torch() -> list[Finding]:
    """The torch that runs, and CUDA."""
    try:
        running = importlib.import_module("torch")
    except Exception as error:
        there = find_torch()
        if there is None:
            return [problem("torch", "is not installed", "pip install torch")]
        text = f"{there.version} in {there.folder} cannot be imported: {_first_line(error)}"
        return [problem("torch", text, f"reinstall it: pip install --force-reinstall torch=={there.version}")]
    version, folder = running.__version__, Path(running.__path__[0])
    findings = []
    if _numbers(version) < MINIMUM_TORCH:
        fix = f"pip install 'torch>={_text(MINIMUM_TORCH)}'"
        findings.append(problem("torch", f"{version} is too old: {_text(MINIMUM_TORCH)} or newer is required", fix))
    else:
        findings.append(ok("torch", f"{version}, {folder}"))
    if running.compiled_with_cxx11_abi():
        findings.append(ok("C++ ABI", "the CXX11 ABI (_GLIBCXX_USE_CXX11_ABI=1), which is every compiler's default"))
    else:
        fix = "compile with CFLAGS=-D_GLIBCXX_USE_CXX11_ABI=0, or install a torch with the CXX11 ABI"
        findings.append(warning("C++ ABI", "torch uses the ABI from before C++11 (_GLIBCXX_USE_CXX11_ABI=0)", fix))
    return [*findings, _cuda(running.version.cuda)]


def _cuda(built_for: str | None) -> Finding:
    # Without a GPU, this import makes torch log its toolkit. The finding below shows the toolkit.
    logger = logging.getLogger("torch.utils.cpp_extension")
    disabled, logger.disabled = logger.disabled, True
    try:
        from interop.build.cuda import find_toolkit
    except Exception as error:  # from a check that reports its own finding
        fix = "see the other lines, and run this again"
        return warning("CUDA", f"the search for nvcc failed: {_first_line(error)}", fix)
    finally:
        logger.disabled = disabled
    toolkit = find_toolkit()
    nvcc = toolkit if isinstance(toolkit, str) else f"nvcc {_text(toolkit.version)} in {toolkit.home}"
    if built_for is None:
        return ok("CUDA", f"torch is built without CUDA, so builds leave .cu files out ({nvcc})")
    text = f"torch is built for {built_for}, {nvcc}"
    if isinstance(toolkit, str):
        return warning(
            "CUDA", text, f"to build .cu files, install the toolkit of CUDA {built_for} or set CUDA_HOME to it"
        )
    if toolkit.version[0] != int(built_for.partition(".")[0]):
        fix = f"to build .cu files, the major versions must agree: set CUDA_HOME to a toolkit of CUDA {built_for}"
        return warning("CUDA", text, fix)
    return ok("CUDA", text)


def build() -> list[Finding]:
    """This package: the torch it was built for, and whether it can be imported."""
    package = Path(__file__).parents[1]
    if not (package / "_build_info.py").is_file():
        text = f"{package.parent} is the source folder, without its compiled half"
        fix = "leave that folder, or build it: pip install --no-build-isolation -e ."
        return [problem("torch-interop", text, fix)]
    made = importlib.import_module("interop._build_info")
    text = f"{made.VERSION}, {package}, built for torch {made.TORCH}"
    running = find_torch()
    if running is None:
        return [problem("torch-interop", f"{text}, which is not installed", f"pip install torch=={made.TORCH}")]
    if running.abi != made.ABI:
        return [problem("torch-interop", f"{text}, but torch {running.version} is running", REBUILD)]
    try:
        importlib.import_module("interop._compiled_half")
        compiled = importlib.import_module("interop._core").build_info()
        importlib.import_module("interop._bridges")
        folders = f"declarations in {get_pxd_dir()}, headers in {get_include()}"
    except Exception as error:
        return [problem("torch-interop", f"{text}, cannot be imported: {_first_line(error)}", REBUILD)]
    return [
        ok("torch-interop", f"{text} by {compiled['compiler']}, C++{compiled['cxx_standard'] // 100 % 100}"),
        ok("for cimport", folders),
    ]


def loaded() -> list[Finding]:
    """What the imports of torch and of this package have loaded, and whether they have turned the GIL on."""
    return [openmp_finding(loaded_libraries()), *gil()]


def gil() -> list[Finding]:
    """Whether the GIL is on. Nothing for a CPython that cannot run without one."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return []
    if not sys._is_gil_enabled():  # type: ignore[attr-defined, unused-ignore]
        return [ok("GIL", "it is off, and the imports of torch and torch-interop leave it off")]
    if sys.flags.gil:  # type: ignore[attr-defined, unused-ignore]
        return [ok("GIL", "it is on, as PYTHON_GIL=1 or -X gil=1 asks for")]
    fix = (
        "the RuntimeWarning at that import names the module: rebuild it so that it declares itself, or set PYTHON_GIL=0"
    )
    return [warning("GIL", "it is on, because a module was imported that does not declare that it needs none", fix)]


def openmp_finding(libraries: list[str]) -> Finding:
    """The finding about the OpenMP runtimes among `libraries`."""
    found = [path for path in libraries if _OPENMP.search(path)]
    if len(found) > 1:
        fix = (
            "each has its own threads and settings, so they slow one another down, and may hang after fork(). Find "
            "out which package has the runtime that is not torch's, and import torch before it; do not link modules "
            "with -fopenmp"
        )
        return warning("OpenMP", f"{len(found)} runtimes are loaded: {', '.join(found)}", fix)
    return ok("OpenMP", found[0] if found else "no runtime is loaded")


def loaded_libraries() -> list[str]:
    """The shared libraries in this process."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    # The sixth field is a path, which may contain spaces.
    paths = [line.split(None, 5)[5] for line in maps.read_text(errors="replace").splitlines() if line.count("/")]
    return sorted({path for path in paths if ".so" in Path(path).name})


SECTIONS = {
    "This folder": current_folder,
    "Python": python,
    "Tools": tools,
    "torch": torch,
    "This package": build,
    "Loaded": loaded,
}
"""The sections about the environment: titles and functions, in the order of the imports.

A section without findings is left out."""


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]
