"""The names that our own ``.pxd`` files declare."""

import difflib
import functools
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

__all__ = ["OURS", "absent_in_stable", "module_of_ours", "names_in", "names_of_methods", "nearest", "scopes"]

OURS = ("ATen", "c10", "interop", "torch")
"""The packages that our declarations are in."""

# Parts of a .pxd that declare no names: comments and strings.
_NO_NAMES = re.compile(r"#.*|\"[^\"]*\"")
_CIMPORTED = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+cimport[ \t]+(?:\(([^)]*)\)|(.*))$", re.MULTILINE)
# In a `cdef extern` block; methods are indented further.
_FUNCTION = re.compile(r"^[ ]{4}(?! )[^(\n]*?(\w+)[ ]*(?:\[[^\[\]]*\])?[ ]*\(", re.MULTILINE)
_METHOD = re.compile(_FUNCTION.pattern.replace("{4}", "{8}", 1), re.MULTILINE)
_KIND = re.compile(
    r"^(?:[ ]{4})?(?:ctypedef[ ]+|cdef[ ]+)?(?:cppclass|struct|union|enum(?:[ ]+class)?|class)[ ]+([\w.]+)",
    re.MULTILINE,
)
_ALIAS = re.compile(r"^[ ]*ctypedef[ ]+[^\n(]*?(\w+)[ ]*$", re.MULTILINE)
_VARIABLE = re.compile(r"^[ ]{4}(?:const[ ]+)?\w+[ ]+(\w+)[ ]*$", re.MULTILINE)


@functools.cache
def names_in(pxd: str, module: str) -> frozenset[str]:
    """The names that the ``.pxd`` of `module` declares or cimports.

    The function searches the text, because `scopes` takes seconds.
    """
    path = Path(pxd, *module.split("."))
    text = _NO_NAMES.sub("", (path.with_suffix(".pxd") if not path.is_dir() else path / "__init__.pxd").read_text())
    names: set[str] = set()
    for origin, several, few in _CIMPORTED.findall(text):
        listed = (several or few).replace("\n", " ")
        if listed.strip() == "*":
            names |= names_in(pxd, origin)
        else:
            names.update(one.split()[-1] for one in listed.split(",") if one.strip())
    for pattern in (_FUNCTION, _KIND, _ALIAS, _VARIABLE):
        names.update(name.rpartition(".")[2] for name in pattern.findall(text))
    return frozenset(names)


@functools.cache
def names_of_methods(pxd: str) -> frozenset[str]:
    """The names of the methods of at.Tensor."""
    text = _NO_NAMES.sub("", Path(pxd, "ATen", "core", "TensorBody.pxd").read_text())
    return frozenset(_METHOD.findall(text))


@functools.cache
def scopes(pxd: str) -> Callable[[str], Any]:
    """A function from a module's name to its scope, which Cython reads once from the folder `pxd`."""
    from Cython.Compiler import Errors
    from Cython.Compiler.Main import Context
    from Cython.Compiler.Options import CompilationOptions, default_options, get_directive_defaults

    from interop.cython.patches import PATCHES, applied

    context = Context([pxd], get_directive_defaults(), cpp=True, options=CompilationOptions(default_options))

    def scope(module: str) -> Any:
        Errors.init_thread()  # else Cython may write to the folder of an earlier translation in this process
        with applied(PATCHES):
            return context.find_module(module, need_pxd=True, absolute_fallback=True)

    return scope


def module_of_ours(name: str, pxd: str) -> str | None:
    """The module of `interop` that declares `name`: the package itself if it exports the name."""
    files = sorted(Path(pxd, "interop").rglob("*.pxd"), key=lambda path: (path.stem != "__init__", path))
    modules = [path.relative_to(pxd).with_suffix("").as_posix().replace("/", ".") for path in files]
    modules = [module.removesuffix(".__init__") for module in modules]
    return next((module for module in modules if name in names_in(pxd, module)), None)


def nearest(name: str, names: Collection[str]) -> str | None:
    """The name that was probably meant by `name`; None if none is near."""
    pairs = range(len(name) - 1)
    swapped = [name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in pairs]  # difflib prefers tan to tanh
    return next((one for one in [*swapped, *difflib.get_close_matches(name, names, 1)] if one in names), None)


def absent_in_stable(name: str) -> str:
    """The message that only other modules have `name`, a dotted name."""
    return f"modules for many releases of torch have no {name}: build this one without stable"
