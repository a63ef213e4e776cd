"""Why a function that a module uses is not there."""

import re
from collections.abc import Iterable

from interop.demangle import demangle
from interop.doctor.elf import Library
from interop.toolchain import Torch

__all__ = ["probable_cause"]


def probable_cause(symbol: str, libraries: Iterable[Library], torch: Torch | None, rebuild: str) -> tuple[str, str]:
    """The name of `symbol` in words, and what to do about nobody defining it; `rebuild` says how it is built."""
    name = (demangle(symbol) if symbol.isascii() else None) or symbol
    version = torch.version if torch else "that is not there"
    if re.match(r"_?Py[A-Z_]|_Py_", symbol):
        return name, f"this is of another release of Python: with this Python, {rebuild}"
    if re.match(r"__kmpc_|omp_|GOMP_", symbol):
        return name, (
            "this is of an OpenMP runtime that torch does not bring: compile with g++, whose runtime is torch's, or "
            "without -fopenmp"
        )
    if re.search(r"THP[A-Z]", name):
        return name, (
            "libtorch_python keeps this to itself, with what CATCH_ALL_ERRORS and END_HANDLE_TH_ERRORS need; use "
            "torch::translate_exception_to_python, as interop/exceptions.h does"
        )
    if re.search(r"\b(at|c10|torch|caffe2)::", name):
        return name, _of_torch(symbol, name, libraries, version, rebuild)
    if re.match(r"(cu|cuda|nv)[A-Z]", symbol):
        return name, (
            "this is CUDA's, and the module is not linked to it: build it with interop.build, with its .cu files among "
            "the sources"
        )
    if re.match(r"std::|__cxa|__gxx", name):
        return name, f"this is of a newer C++ library than the one here: on this machine, {rebuild}"
    extern = "" if symbol.startswith("_Z") else '; if it is a C++ function, write no extern "C" around its declaration'
    return name, (
        "no source of the module defines that: is its file among the sources of the Extension, and is it declared the "
        f"same way in both files? If it is of a library, name that in libraries=[...]{extern}"
    )


def _of_torch(symbol: str, name: str, libraries: Iterable[Library], version: str, rebuild: str) -> str:
    if "cuda" in name.lower() and not any("torch_cuda" in library.path.name for library in libraries):
        return f"this is of a torch with CUDA, and torch {version} is without: {rebuild}, or install such a torch"
    if re.search(r"Ss|\bstd::string\b", symbol) or ("basic_string" in name and "__cxx11" not in name):
        return (
            "this takes the std::string of the ABI before C++11, and torch is built with the newer one: compile the "
            "module without -D_GLIBCXX_USE_CXX11_ABI=0"
        )
    return f"torch {version} has no such function, so the module was compiled for another release: {rebuild}"
