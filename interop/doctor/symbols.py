"""Explain why a function that a module uses is undefined."""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from interop import demangle
from interop.doctor.elf import Library, NotALibraryError, read
from interop.toolchain import Torch

__all__ = ["in_words", "probable_cause"]

MAX_NAME = 2000
"""Maximum number of characters shown of a name."""

# A damaged name of 200 letters can demangle to gigabytes: each part may be twice as long as the one before. The limit
# is for what comes on top of Python itself, which reserves a gigabyte of addresses where it is free-threaded.
_DEMANGLE = f"""
import json, resource, runpy, sys
demangle = runpy.run_path(sys.argv[1])["demangle"]
with open("/proc/self/statm") as file:
    limit = int(file.read().split()[0]) * resource.getpagesize() + (1 << 29)
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
for line in sys.stdin:
    print(json.dumps((demangle(json.loads(line)) or "")[:{MAX_NAME}]), flush=True)
"""


def in_words(symbols: Sequence[str]) -> list[str]:
    """The C++ declarations of symbols; a symbol stays unchanged if it has none, or one that is too long."""
    names = [symbol if symbol.isascii() else "" for symbol in symbols]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _DEMANGLE, str(demangle.__file__)],
        input="".join(f"{json.dumps(name)}\n" for name in names),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines(keepends=True) if line.endswith("\n")]
    found += [""] * (len(symbols) - len(found))
    return [name or symbol[:MAX_NAME] for name, symbol in zip(found, symbols, strict=True)]


def probable_cause(
    symbol: str, name: str, libraries: Iterable[Library], torch: Torch | None, rebuild: str
) -> tuple[str, str]:
    """`name`, which is `symbol` in words, and the fix for its missing definition; `rebuild` rebuilds the module."""
    if re.match(r"_?Py[A-Z_]|_Py_", symbol):
        return name, f"this belongs to another release of Python: with this Python, {rebuild}"
    if re.match(r"__kmpc_|omp_|GOMP_", symbol):
        return name, (
            "this belongs to another OpenMP runtime than torch's: compile with g++, whose runtime is torch's, or "
            "without -fopenmp"
        )
    if re.search(r"THP[A-Z]", name):
        return name, (
            "libtorch_python does not export this, nor others that CATCH_ALL_ERRORS and END_HANDLE_TH_ERRORS need; use "
            "torch::translate_exception_to_python, as interop/exceptions.h does"
        )
    if re.search(r"\b(at|c10|torch|caffe2)::", name):
        return name, _of_torch(symbol, name, libraries, torch, rebuild)
    if re.match(r"(cu|cuda|nv)[A-Z]", symbol):
        return name, (
            "this is part of CUDA, and the module is not linked to it: use interop.build, with its .cu files among "
            "the sources"
        )
    if re.match(r"std::|__cxa|__gxx", name):
        return name, f"this belongs to a newer C++ library than the installed one: on this machine, {rebuild}"
    extern = "" if symbol.startswith("_Z") else '; if it is a C++ function, write no extern "C" around its declaration'
    return name, (
        "no source of the module defines this: is its file among the sources of the Extension, and is it declared the "
        f"same way in both files? If it belongs to a library, name the library in libraries=[...]{extern}"
    )


def _of_torch(symbol: str, name: str, libraries: Iterable[Library], torch: Torch | None, rebuild: str) -> str:
    version = torch.version if torch else "(not installed)"
    if "cuda" in name.lower() and torch and torch.cuda:
        linked = {library.path.name for library in libraries}
        for path in sorted(Path(torch.lib_dir).glob("lib*_cuda.so")):
            with contextlib.suppress(NotALibraryError, OSError):  # other lines report a damaged torch
                if path.name not in linked and symbol in read(path).defined:
                    return (
                        f"this is in torch's {path.name}, and the module is not linked to it: build it with "
                        "interop.build, with its .cu files among the sources, or with "
                        f"{path.stem.removeprefix('lib')!r} in libraries=[...]"
                    )
    elif "cuda" in name.lower():
        return f"this needs a torch with CUDA, and torch {version} has no CUDA: {rebuild}, or install a torch with CUDA"
    if re.search(r"Ss|\bstd::string\b", symbol) or ("basic_string" in name and "__cxx11" not in name):
        return (
            "this uses the std::string of the ABI before C++11, but torch is built with the newer one: compile the "
            "module without -D_GLIBCXX_USE_CXX11_ABI=0"
        )
    return f"torch {version} has no such function, so the module was compiled for another release: {rebuild}"
