"""The flags that our modules are compiled with."""

import functools
import os
import re
import shlex
import subprocess

import torch
from torch.utils import cpp_extension

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


def with_default_flags(flags, defaults=()):
    """`flags` behind our defaults, so that they win; an optimisation level in CFLAGS wins over ours too."""
    if isinstance(flags, dict):
        return flags | {"cxx": with_default_flags(flags.get("cxx", ()), defaults)}
    optimised = re.search(r"(^|\s)-O", os.environ.get("CFLAGS", ""))
    return [*CXX_FLAGS, *defaults, *([] if optimised else ["-O2"]), *flags]
