"""The flags that our modules are compiled with."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from interop.toolchain import CXX_FLAGS, openmp_flags

__all__ = ["CXX_FLAGS", "openmp_flags", "with_default_flags"]

Flags = Iterable[str] | Mapping[str, Iterable[str]]
"""Flags for all compilers, or by compiler."""


def with_default_flags(flags: Flags, defaults: Iterable[str] = ()) -> Any:
    """Our defaults, then `flags`, which override them. An optimisation level in CFLAGS overrides ours too."""
    if isinstance(flags, Mapping):
        return dict(flags) | {"cxx": with_default_flags(flags.get("cxx", ()), defaults)}
    optimised = re.search(r"(^|\s)-O", os.environ.get("CFLAGS", ""))
    return [*CXX_FLAGS, *defaults, *([] if optimised else ["-O2"]), *flags]
