"""Writes .pyx files that call each declared signature, once for each C++ overload that the declaration covers."""

from collections.abc import Iterator
from itertools import count, islice

from interop.codegen.overloads import OPEN, Candidate, Overload, overloads
from interop.codegen.surface import RESERVED, Parameter, read

MODULE = """\
# Each declared signature, called. Nothing here is ever run.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

cimport ATen as at
cimport interop

cdef object o
cdef at.Tensor tensor
cdef at.Scalar scalar
cdef at.Generator generator
cdef at.Device device
cdef at.DeviceIndex device_index
cdef at.Layout layout
cdef at.MemoryFormat memory_format
cdef at.ScalarType dtype
cdef at.TensorOptions options
cdef at.IntArrayRef sizes
cdef interop.OptionalTensorList optional_tensors
cdef interop.BoolArray2 two
cdef interop.BoolArray3 three
cdef interop.BoolArray4 four
cdef vector[int64_t] ints
cdef vector[double] doubles
cdef vector[at.Scalar] scalars
cdef vector[at.Tensor] listed
cdef const char* text
cdef cbool truth
cdef int small
cdef int64_t large
cdef double real
cdef double complex complex_double
cdef float complex complex_float
"""
# Variables of types that stable modules do not have.
OF_ONE_RELEASE = """\
cdef at.Storage storage
cdef at.SymInt symbol
cdef at.SymFloat symbolic_real
cdef at.SymIntArrayRef symbols
"""

# Expressions for each declared type.
TYPED = {
    "BoolArray2": ["two"],
    "BoolArray3": ["three"],
    "BoolArray4": ["four"],
    "CScalar&": ["scalar"],
    "CTensor&": ["tensor"],
    "CTensorBase&": ["tensor"],
    "Device": ["device"],
    "DeviceIndex": ["device_index"],
    "DoubleList": ["doubles"],
    "Generator": ["generator"],
    "IntList": ["ints", "sizes", "interop.dims(1, 2)"],
    "Layout": ["layout"],
    "MemoryFormat": ["memory_format"],
    "OptionalTensorList": ["optional_tensors"],
    "ScalarList": ["scalars"],
    "ScalarType": ["dtype", "at.kFloat"],
    "Storage": ["storage"],
    "SymFloat": ["symbolic_real"],
    "SymInt": ["symbol"],
    "SymIntList": ["symbols"],
    "Tensor&": ["tensor"],
    "TensorList": ["listed"],
    "TensorOptions": ["options", "tensor.options()"],
    "cbool": ["True", "truth"],
    "const char*": ["text", 'b"text"'],
    "double": ["real", "2.0"],
    "double complex": ["complex_double", "1.0 + 2.0j"],
    "float complex": ["complex_float"],
    "int": ["small"],
    "int64_t": ["large", "2"],
    "object": ["o"],
}
# Further expressions for open arguments.
TUPLES = {
    "IntList": ["(1, 2)", "(small, large)", "small"],
    "DoubleList": ["(1.0, 2.0)", "real"],
    "ScalarList": ["(1.0, 2)", "real"],
    "SymInt": ["large", "small", "2"],
    "SymIntList": ["(symbol, 2)", "(large, symbol, small)", "sizes", "ints"],
    "TensorList": ["(tensor, tensor)", "interop.tensors(tensor, tensor)"],
    "BoolArray2": ["(True, truth)"],
    "BoolArray3": ["(True, truth, False)"],
    "BoolArray4": ["(True, truth, False, True)"],
    "CScalar&": ["real", "large", "small"],
    "TensorOptions": ["dtype", "layout", "device"],
}


def expressions(form: str, parameter: Parameter) -> list[str]:
    """The expressions for `parameter`'s argument if `form` is declared; none if `form` is for another overload."""
    kind = parameter.kind
    if form == OPEN:
        written = [way for mine in kind.cython_types for way in (*TYPED[mine], *TUPLES.get(mine, ()))]
        return [*written, "o", *(["None"] if "optional" in parameter.cpp.lower() else [])]
    return TYPED[form] if kind.takes(form) or form == "CTensorBase&" else []


def calls(overload: Overload, turn: Iterator[int]) -> Iterator[str]:
    """A call for each declared form and each C++ overload that it covers; `turn` varies the argument expressions."""
    for form in overload.call_forms():
        for candidate in overload.candidates:
            yield from islice(_call(overload, candidate, form, turn), 1)


def _call(overload: Overload, candidate: Candidate, form: tuple[str, ...], turn: Iterator[int]) -> Iterator[str]:
    ways = [expressions(mine, parameter) for mine, parameter in zip(form, candidate.parameters, strict=True)]
    if all(ways):
        chosen = [listed[next(turn) % len(listed)] for listed in ways]
        name = overload.name + "_" if overload.name in RESERVED else overload.name
        yield f"{'tensor' if overload.method else 'at'}.{name}({', '.join(chosen)})"


def every_call(*, for_stable: bool = False) -> list[str]:
    """A call of each declared signature, functions first; with `for_stable`, of those for stable modules."""
    surface, turn = read(for_stable=for_stable), count()
    listed = [*overloads(surface.functions, method=False), *overloads(surface.methods, method=True)]
    return [call for overload in listed for call in calls(overload, turn)]


def module(listed: list[str], *, for_stable: bool = False) -> str:
    """The text of a .pyx file with the calls, 20 to a function."""
    parts = [MODULE, "" if for_stable else OF_ONE_RELEASE, "\n"]
    for start in range(0, len(listed), 20):
        body = "".join(f"    {call}\n" for call in listed[start : start + 20])
        parts.append(f"def calls_{start}():\n{body}\n\n")
    return "".join(parts)
