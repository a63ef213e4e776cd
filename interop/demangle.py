"""C++ declarations as text: `demangle` decodes a mangled name, `split_arguments` splits arguments."""

import ctypes
import functools
from typing import Any

__all__ = ["demangle", "split_arguments"]


@functools.cache
def _demangler() -> tuple[Any, Any]:
    library = ctypes.CDLL("libstdc++.so.6")  # torch needs it too
    function = library.__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free = ctypes.CDLL(None).free
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    return function, free


def demangle(symbol: str) -> str | None:
    """The C++ declaration of `symbol`, such as ``"saxpy(float*, float const*, float, long)"``.

    None for a C symbol.
    """
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


def split_arguments(text: str) -> list[str]:
    """Split arguments, or template arguments, at the outermost commas."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
