"""The options for compiling a module: the keyword arguments that `load` and `load_inline` share."""

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Number, Real
from types import NoneType
from typing import Any, TypedDict

from interop.stable_abi import stable_abi

__all__ = ["Options", "check_text", "checked"]


class Options(TypedDict, total=False):
    """The keyword arguments that `interop.load` and `interop.load_inline` share; `load` describes them."""

    include_dirs: Sequence[str | os.PathLike[str]]
    define_macros: Sequence[tuple[str, str | None]]
    libraries: Sequence[str]
    library_dirs: Sequence[str | os.PathLike[str]]
    extra_compile_args: Sequence[str] | Mapping[str, Sequence[str]]
    extra_link_args: Sequence[str]
    compiler_directives: Mapping[str, object] | None
    annotate: bool
    stable: str | None
    py_limited_api: str | None
    free_threaded: bool


COMPILERS = ("cxx", "nvcc")
_EXAMPLES = {
    "include_dirs": "folders, such as ['include']",
    "define_macros": "pairs of a name and text, a number or None, such as [('NAME', '1'), ('FLAG', None)]",
    "libraries": "names, such as ['m']",
    "library_dirs": "folders, such as ['lib']",
    "extra_compile_args": "flags, such as ['-O3']",
    "extra_link_args": "flags, such as ['-Wl,-z,now']",
}


def checked(function: str, options: Mapping[str, Any]) -> dict[str, object]:
    """The options of a call to `function`, with absolute folders, and without empty options, which are the default."""
    for name in options:
        if name not in Options.__annotations__:
            close = difflib.get_close_matches(name, Options.__annotations__, 1)
            advice = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(Options.__annotations__)}"
            raise TypeError(f"{function}() has no argument {name!r}; {advice}")
    found: dict[str, object] = {}
    for name, value in options.items():
        if name == "extra_compile_args" and isinstance(value, Mapping):
            for key in value:
                if key not in COMPILERS:
                    close = difflib.get_close_matches(str(key).lower(), COMPILERS, 1)
                    advice = f"; did you mean {close[0]!r}?" if close else ""
                    raise TypeError(f"the keys of {name} must be 'cxx' or 'nvcc', got {key!r}{advice}")
            found[name] = {key: _listed(f"{name}[{key!r}]", flags, _EXAMPLES[name]) for key, flags in value.items()}
        elif name in _EXAMPLES:
            found[name] = _listed(name, value, _EXAMPLES[name])
        elif name == "compiler_directives" and not isinstance(value, (Mapping, type(None))):
            raise TypeError(f"{name} must be a dict, such as {{'boundscheck': False}}, got {value!r}")
        else:
            if name == "compiler_directives":
                for key in value or ():
                    if not isinstance(key, str):
                        raise TypeError(f"the keys of {name} must be strings, such as 'boundscheck', got {key!r}")
                for key, one in (value or {}).items():
                    for part in one if isinstance(one, (list, tuple)) and one else [one]:
                        if not isinstance(part, (Number, str, NoneType)):
                            expected = "True, False, None, a number, text, or a list of these"
                            raise TypeError(f"{name}[{key!r}] must be {expected}, got {one!r}")
            found[name] = value
    stable_abi(found.get("stable"), found.get("py_limited_api"))  # raises if either is wrong
    return {name: value for name, value in found.items() if value}


def check_text(name: str, text: str | bytes) -> None:
    """Raise ValueError unless a command line can have the text, which is of the argument `name`."""
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text that can be encoded, got {text!r}") from None
    if b"\0" in encoded:
        raise ValueError(f"{name} must have no character NUL, got {text!r}")


def check_flag(name: str, flag: str, how: str = "") -> None:
    """Raise ValueError for ``@FILE``, because a later change of the file would build nothing."""
    if any(part.startswith("@") for part in flag.split(",")):  # also behind -Wl,
        raise ValueError(f"{name} must have no file of flags, got {flag!r}; give its flags{how}")


def _macro(name: str, value: Any) -> tuple[str, Any]:
    if not re.fullmatch(r"(?!\d)[\w$]+(\(.*\))?", name):
        raise ValueError(f"define_macros must have names of C macros, got {name!r}")
    if isinstance(value, bool):
        value = int(value)
    finite = value.is_finite() if isinstance(value, Decimal) else value not in (math.inf, -math.inf)
    if not finite or value != value:
        raise ValueError(f"define_macros must have finite numbers, got {value!r} for {name}")
    if set("\r\n") & {*str(value)}:  # the compiler ends the macro there
        raise ValueError(f"define_macros must have no line breaks, got {value!r} for {name}")
    return name, value


def _listed(name: str, value: Any, example: str) -> list[Any]:
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
        raise TypeError(f"{name} must be a list of {example}, got {value!r}")
    items = list(value)
    if name == "define_macros":
        fits = all(
            isinstance(item, (tuple, list))
            and len(item) == 2
            and isinstance(item[0], str)
            and isinstance(item[1], (str, Real, Decimal, os.PathLike, NoneType))
            for item in items
        )
    else:
        fits = all(isinstance(item, (str, os.PathLike) if name.endswith("_dirs") else str) for item in items)
    if not fits:
        raise TypeError(f"{name} must be a list of {example}, got {items!r}")
    for item in items:
        for part in item if name == "define_macros" else [item]:
            if isinstance(part, (str, os.PathLike)):
                check_text(name, os.fspath(part))
    if name == "define_macros":
        return [_macro(*item) for item in items]
    for item in items:
        if not item and not name.endswith("_dirs"):  # an empty folder is the current one, as of os.path.dirname()
            raise ValueError(f"{name} must have no empty text, got {items!r}")
        if name.startswith("extra_"):
            check_flag(name, item, f": shlex.split(Path({item[1:]!r}).read_text())")
    # Make folders absolute, because the program may change the current folder later.
    return [os.path.abspath(item) for item in items] if name.endswith("_dirs") else items
