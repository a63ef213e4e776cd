"""The methods of Cython's compiler that are patched during a translation, each with its reason and its last release.

Cython has no hooks for these decisions. A patch lasts for one translation. If a release of Cython has no method of
that name, the patch is left out: only its purpose is lost. tests/cython/test_patches.py shows what breaks without each
patch, and fails when a patch is no longer needed. docs/upstream has the changes to Cython that would make the patches
unnecessary.

The arithmetic of template types is in template_arithmetic.py. By patches of their own, checks.py, hints.py and
dependencies.py see what Cython reads and says.
"""

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from interop.cython.versions import FLOOR, running

__all__ = ["PATCHES", "WHOLE_PATHS", "Patch", "applied"]


@dataclass(frozen=True)
class Patch:
    """A method or function of Cython's compiler, and its replacement."""

    target: str  # module, class and method, as in "PyrexTypes:CReferenceType.deduce_template_params"
    make: Callable[[Any], Any]  # makes the replacement from the original
    without: str  # what happens without it
    since: tuple[int, int] | None = None  # the first minor release of Cython that needs it; None for the floor
    until: tuple[int, int] | None = None  # the last such release; None if not yet known
    upstream: str | None = None  # the URL of Cython's issue, or the name of the change in docs/upstream

    @property
    def name(self) -> str:
        """The class and the method, as in "CReferenceType.deduce_template_params"."""
        return self.target.partition(":")[2]

    def is_needed(self) -> bool:
        """Whether this release of Cython needs the patch."""
        return (self.since or FLOOR) <= running() <= (self.until or (sys.maxsize, 0))

    def owner(self) -> tuple[Any, str] | None:
        """The owner of the method, and its name; None in a release of Cython without it."""
        module, _, path = self.target.partition(":")
        *classes, name = path.split(".")
        try:
            owner = functools.reduce(getattr, classes, importlib.import_module(f"Cython.Compiler.{module}"))
        except (ImportError, AttributeError):
            return None
        return (owner, name) if hasattr(owner, name) else None


@contextlib.contextmanager
def applied(patches: Iterable[Patch]) -> Iterator[None]:
    """Apply those `patches` that this release of Cython needs and has the methods for."""
    with contextlib.ExitStack() as stack:
        for patch in patches:
            if patch.is_needed() and (found := patch.owner()):
                stack.enter_context(_replaced(*found, patch.make))
        yield


@contextlib.contextmanager
def _replaced(owner: type | ModuleType, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Replace the method or function `name` of `owner` with ``make(original)``."""
    inherited = name not in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)


def _value(kind: Any) -> Any:
    """The type that a reference refers to, without const; any other type as it is."""
    if not kind.is_reference:
        return kind
    referred = kind.ref_base_type
    return referred.cv_base_type if referred.is_cv_qualified else referred


def _deduce_value(original: Callable[..., Any]) -> Callable[..., Any]:
    """For ``T``, C++ deduces the type that a reference refers to. Cython 3.3 passes `is_value_type`."""

    def deduce(self: Any, actual: Any, **options: Any) -> Any:
        return original(self, _value(actual) if options.get("is_value_type", True) else actual, **options)

    return deduce


def _deduce_reference(original: Callable[..., Any]) -> Callable[..., Any]:
    """For ``T&``, in the same way."""
    return lambda self, actual, **options: original(self, _value(actual), **options)


def _deduce_forwarding(original: Callable[..., Any]) -> Callable[..., Any]:
    """For ``T&&``, C++ does deduce a reference."""

    def deduce(self: Any, actual: Any, **options: Any) -> Any:
        is_template = _is_placeholder(self.ref_base_type)
        return {self.ref_base_type: actual} if is_template else original(self, actual, **options)

    return deduce


def _declare_tuple(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, pos, components: original(self, pos, [_value(component) for component in components])


def _valid_element(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, kind, *nested: _is_placeholder(kind) or original(self, kind, *nested)


def _deduce_element(original: Callable[..., Any]) -> Callable[..., Any]:
    """For ``T[:, :]``. A contiguous memoryview also matches, and becomes a strided one."""

    def deduce(self: Any, actual: Any, **options: Any) -> Any:
        if not _is_placeholder(self.dtype):
            return original(self, actual, **options)
        fits = actual.is_memoryviewslice and actual.ndim == self.ndim
        return {self.dtype: actual.dtype} if fits else None

    return deduce


class _AsItIs:
    """An operand that is not cast to the type of the other operand, and that may appear to be of another type."""

    def __init__(self, operand: Any, kind: Any) -> None:
        self._operand = operand
        self.type = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operand, name)

    def result_as(self, _: Any) -> str:
        return str(self._operand.result())


def _compare_as_declared(original: Callable[..., Any]) -> Callable[..., Any]:
    def generate_operation_code(node: Any, code: Any, result: str, left: Any, operator: str, right: Any) -> None:
        if left.type.is_cpp_class and not right.type.is_pyobject:
            right = _AsItIs(right, right.type)
        elif right.type.is_cpp_class and not left.type.is_pyobject:
            # Cython before 3.3 looks for the wider type of a number and a class, and crashes.
            left = _AsItIs(left, right.type)
        original(node, code, result, left, operator, right)

    return generate_operation_code


def _is_placeholder(kind: Any) -> bool:
    from Cython.Compiler.PyrexTypes import TemplatePlaceholderType

    return isinstance(kind, TemplatePlaceholderType)


def _whole_path(_: Any) -> Callable[[Any], Any]:
    return lambda source: Path(source.filename)


def _whole_path_text(_: Any) -> Callable[[Any], Any]:
    return lambda source: source.filename


_REFERENCES = (
    "Cython makes an explicit template argument T& of a reference (an element of a vector, the value of an optional, a "
    "parameter const T&), which C++ never deduces for a parameter T or const T&, and the C++ does not compile"
)
_MEMORYVIEWS = "function templates cannot have memoryviews of a parameter, T[:, :], so interop.memview does not compile"

_ARGUMENTS, _TEMPLATES = "cython-template-arguments.patch", "cython-memoryview-templates.patch"

PATCHES = (
    Patch("PyrexTypes:TemplatePlaceholderType.deduce_template_params", _deduce_value, _REFERENCES, upstream=_ARGUMENTS),
    Patch("PyrexTypes:CReferenceType.deduce_template_params", _deduce_reference, _REFERENCES, (3, 3), None, _ARGUMENTS),
    Patch(
        "PyrexTypes:CppRvalueReferenceType.deduce_template_params",
        _deduce_forwarding,
        without="with the first one, a forwarding reference T&& loses the reference",
        until=(3, 2),
    ),
    Patch(
        "Symtab:ModuleScope.declare_tuple_type",
        _declare_tuple,
        without="a tuple of C values with a reference among them becomes a struct that does not compile",
        upstream=_ARGUMENTS,
    ),
    Patch(
        "ExprNodes:CmpNode.generate_operation_code",
        _compare_as_declared,
        without="`t > 0` compares the at.Tensor t with at::Tensor(0), which is undefined; other numbers do not compile",
        until=(3, 2),
    ),
    Patch("PyrexTypes:MemoryViewSliceType.valid_dtype", _valid_element, _MEMORYVIEWS, upstream=_TEMPLATES),
    Patch("PyrexTypes:MemoryViewSliceType.deduce_template_params", _deduce_element, _MEMORYVIEWS, upstream=_TEMPLATES),
)

_RELATIVE = (
    "tracebacks name a source relative to the folder that was current when it was translated, and Python finds no line "
    "of it"
)

WHOLE_PATHS = (
    Patch("Scanning:FileSourceDescriptor.get_relative_path", _whole_path, without=_RELATIVE, since=(3, 3)),
    Patch("Scanning:FileSourceDescriptor.get_filenametable_entry", _whole_path_text, without=_RELATIVE, until=(3, 2)),
    # Cython uses the description in place of an absolute entry of the filename table.
    Patch("Scanning:FileSourceDescriptor.get_description", _whole_path_text, without=_RELATIVE, until=(3, 2)),
)
