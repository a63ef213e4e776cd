"""Mends, while Cython translates, what it gets wrong about references, and lacks about memoryviews."""

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType

from Cython.Compiler.PyrexTypes import (
    CppRvalueReferenceType,
    CReferenceType,
    MemoryViewSliceType,
    TemplatePlaceholderType,
)
from Cython.Compiler.Symtab import ModuleScope


@contextlib.contextmanager
def replaced(owner: type | ModuleType, name: str, make: Callable[[Callable], Callable]) -> Iterator[None]:
    """While this lasts, the method or function `name` of `owner` is what `make` makes of the original."""
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextlib.contextmanager
def mend_references() -> Iterator[None]:
    """While this lasts, what is a reference is a value to templates, as in C++, and in tuples of C values.

    An element of a vector, what ``optional.value()`` returns, and a parameter ``const T&`` are references. Of these
    Cython makes an explicit template argument ``T&``, which C++ itself never deduces for a parameter ``T`` or ``const
    T&``, and structs with members that are references, which do not compile.
    """
    with (
        replaced(TemplatePlaceholderType, "deduce_template_params", _deduce),
        replaced(CReferenceType, "deduce_template_params", _deduce_of_reference),
        replaced(CppRvalueReferenceType, "deduce_template_params", _deduce_of_forwarding),
        replaced(ModuleScope, "declare_tuple_type", _declare_tuple),
    ):
        yield


@contextlib.contextmanager
def mend_memoryviews() -> Iterator[None]:
    """While this lasts, function templates may have memoryviews of a parameter, ``T[:, :]``: see interop/memview.pxd.

    Of overloads with different numbers of dimensions the one that fits is chosen. A contiguous memoryview fits as well,
    and becomes one with strides.
    """
    with (
        replaced(MemoryViewSliceType, "valid_dtype", _valid_element),
        replaced(MemoryViewSliceType, "deduce_template_params", _deduce_of_elements),
    ):
        yield


# Later versions of Cython tell it whether the parameter is a value: is_value_type.


def _deduce(original):
    def deduce(self, actual, **options):
        return original(self, _value(actual) if options.get("is_value_type", True) else actual, **options)

    return deduce


def _deduce_of_reference(original):
    return lambda self, actual, **options: original(self, _value(actual), **options)


def _deduce_of_forwarding(original):
    """Of ``T&&``, for which C++ does deduce a reference."""

    def deduce(self, actual, **options):
        is_template = isinstance(self.ref_base_type, TemplatePlaceholderType)
        return {self.ref_base_type: actual} if is_template else original(self, actual, **options)

    return deduce


def _declare_tuple(original):
    return lambda self, pos, components: original(self, pos, [_value(component) for component in components])


def _valid_element(original):
    return lambda self, kind, *nested: isinstance(kind, TemplatePlaceholderType) or original(self, kind, *nested)


def _deduce_of_elements(original):
    def deduce(self, actual, **options):
        if not isinstance(self.dtype, TemplatePlaceholderType):
            return original(self, actual, **options)
        fits = actual.is_memoryviewslice and actual.ndim == self.ndim
        return {self.dtype: actual.dtype} if fits else None

    return deduce


def _value(kind):
    """The type that a reference refers to, without const; any other type as it is."""
    if not kind.is_reference:
        return kind
    referred = kind.ref_base_type
    return referred.cv_base_type if referred.is_cv_qualified else referred
