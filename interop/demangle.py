"""`demangle`: the C++ declaration behind a linker's name."""

import ctypes
import functools
from typing import Any

__all__ = ["demangle"]


@functools.cache
def _demangler() -> tuple[Any, Any]:
    library = ctypes.CDLL("libstdc++.so.6")  # which torch needs as well
    function = library.__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free = ctypes.CDLL(None).free
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    return function, free


def demangle(symbol: str) -> str | None:
    """The C++ declaration behind `symbol`, ``"saxpy(float*, float const*, float, long)"``; None if it is C's."""
    if not symbol.startswith("_Z"):
        return None
    function, free = _demangler()
    status = ctypes.c_int()
    text = function(symbol.encode(), None, None, ctypes.byref(status))
    if not text:
        return None
    try:
        return ctypes.string_at(text).decode()
    finally:
        free(text)
