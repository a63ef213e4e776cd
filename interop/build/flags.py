"""The flags that our modules are compiled with."""

import functools
import os
import re
import shlex
import subprocess
import sys

import torch
from torch.utils import cpp_extension

CXX_FLAGS = ("-std=c++20",)
"""What torch's headers need: required from torch 2.14 on, accepted since 2.10."""


def openmp_flags() -> tuple[str, ...]:
    """The flag with which ATen's loops run on several threads. Without it, ATen/Parallel.h makes them serial.

    It is for the compiler and not for the linker: a module that is linked with it asks for a libgomp by name and may
    get the system's, with threads and settings of its own. The functions that the compiled code calls are found in the
    one that torch was linked to. clang's would be those of another library, so it does not get the flag; nor does a
    torch whose threads are not OpenMP's.
    """
    if not torch.backends.openmp.is_available():
        return ()
    return ("-fopenmp",) if is_gcc() and sys.platform == "linux" else ()


def is_gcc() -> bool:
    """Whether the compiler is g++ itself, and not one that says so as well, as clang does."""
    try:
        macros = _macros(cpp_extension.get_cxx_compiler())
    except (OSError, subprocess.CalledProcessError):
        return False  # what is wrong with the compiler, building will say
    return "__GNUC__" in macros and "__clang__" not in macros


@functools.cache
def _macros(compiler: str) -> str:
    command = [*shlex.split(compiler), "-dM", "-E", "-x", "c++", os.devnull]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def with_default_flags(flags, defaults=()):
    """`flags` behind our defaults, so that they win; an optimisation level in CFLAGS wins over ours too."""
    if isinstance(flags, dict):
        return flags | {"cxx": with_default_flags(flags.get("cxx", ()), defaults)}
    optimised = re.search(r"(^|\s)-O", os.environ.get("CFLAGS", ""))
    return [*CXX_FLAGS, *defaults, *([] if optimised else ["-O2"]), *flags]
