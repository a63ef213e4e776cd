"""Every type of a schema, its declaration in a Cython kernel, and operators that take and return it.

tools/schema_table.py prints this table for docs/operators-guide.md. To add a type, add it to FAMILIES.
"""

from dataclasses import dataclass

import torch

NO_LISTS = ("", "?")
LISTS = ("", "?", "[]", "[]?")


@dataclass(frozen=True)
class Type:
    """A type of a schema: the declarations of a parameter, the one in the guide first, and of a result."""

    schema: str
    parameters: tuple[str, ...]
    result: str | None
    values: tuple

    @property
    def changes(self):
        """Whether the operator changes the argument."""
        return "!" in self.schema


def family(name, cython, values, forms, *, also=(), by_reference=False, result=True):
    """A type and its optional, list and optional list, as far as `forms` names them."""
    found = []
    for form in forms:
        plain = {
            "": cython,
            "?": f"optional[{cython}]",
            "[]": f"vector[{cython}]",
            "[]?": f"optional[vector[{cython}]]",
        }
        refer = by_reference or "[]" in form
        parameters = (f"const {plain[form]}&" if refer else plain[form], *(also if form == "" else ()))
        made = {"": values, "?": (None, *values), "[]": ([], [*values]), "[]?": (None, [*values])}
        found.append(Type(name + form, parameters, plain[form] if result else None, made[form]))
    return found


def numbers(name, reference, tensor):
    """Integers, whose lists also have their own type."""
    found = family(name, tensor, (3, -7), LISTS)
    return [
        Type(one.schema, (reference, *one.parameters), one.result, one.values) if one.schema.endswith("[]") else one
        for one in found
    ]


TENSORS = tuple(torch.full(shape, 0.5) for shape in ((), (2,), (2, 3)))

FAMILIES = {
    "Tensor": [
        *family("Tensor", "at.Tensor", TENSORS, ("", "?", "[]"), by_reference=True),
        *family("Tensor", "at.Tensor", TENSORS, ("[]?",), result=False),  # as a result it has no gradient
        Type("Tensor?[]", ("const vector[optional[at.Tensor]]&",), None, ([], [None, *TENSORS])),
        Type("Tensor?[]?", ("const optional[vector[optional[at.Tensor]]]&",), None, (None, [None, *TENSORS])),
    ],
    "Tensor(a!)": [
        Type("Tensor(a!)", ("at.Tensor&",), None, TENSORS),
        Type("Tensor(a!)?", ("const optional[at.Tensor]&",), None, (None, *TENSORS)),
        Type("Tensor(a!)[]", ("const vector[at.Tensor]&",), None, ([], [*TENSORS])),
    ],
    "int": numbers("int", "at.IntArrayRef", "int64_t"),
    "SymInt": numbers("SymInt", "at.SymIntArrayRef", "at.SymInt"),
    "float": family("float", "double", (0.5, -2.0), LISTS, also=("float",)),
    "bool": family("bool", "cbool", (True, False), LISTS, also=("bint",)),
    "Scalar": [
        *family("Scalar", "at.Scalar", (3, 0.5, True), NO_LISTS, by_reference=True),
        Type("Scalar[]", ("const vector[at.Scalar]&",), None, ([], [3, 0.5, True])),  # no C++ kernel returns one
    ],
    "str": family("str", "string", ("", "text"), LISTS, by_reference=True),
    "ScalarType": family("ScalarType", "at.ScalarType", (torch.float64, torch.int8), NO_LISTS),
    "Device": family("Device", "at.Device", (torch.device("cpu"), torch.device("cuda:1")), NO_LISTS),
    "Layout": family("Layout", "at.Layout", (torch.strided, torch.sparse_coo), NO_LISTS),
    "MemoryFormat": family("MemoryFormat", "at.MemoryFormat", (torch.contiguous_format, torch.channels_last), NO_LISTS),
    "Generator": [
        Type(
            "Generator?",
            ("at.Generator", "const optional[at.Generator]&"),
            None,
            (None, torch.Generator().manual_seed(7)),
        ),
    ],
}
TYPES = [one for types in FAMILIES.values() for one in types]
CASES = [(one, parameter) for one in TYPES for parameter in one.parameters]


def digest(value):
    """A number that stands for a value. digest.h computes the same number in C++."""
    if value is None:
        return -1.0
    if isinstance(value, list):
        return float(sum((i + 2) * digest(one) for i, one in enumerate(value)))
    if isinstance(value, torch.Tensor):
        return value.dim() + 1.0
    if isinstance(value, torch.Generator):
        return value.initial_seed() + 1.0
    if isinstance(value, str):
        return len(value) + 1.0
    if isinstance(value, torch.device):
        return 10.0 * (value.type == "cuda") + (-1 if value.index is None else value.index) + 3.0
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return SEEN[value]
    return float(value)


# The values of C++'s enums.
SEEN = {
    torch.float64: 7.0, torch.int8: 1.0, torch.strided: 0.0, torch.sparse_coo: 1.0, torch.contiguous_format: 0.0,
    torch.channels_last: 2.0,
}  # fmt: skip

HEAD = """\
cimport ATen as at
cimport torch
from interop cimport make_tuple, tuple2
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector
from torch.autograd cimport Context, Function
from torch.library cimport Operator, Tag, define, impl, register_autocast, register_autograd


cdef extern from "digest.h" nogil:
    double digest[T](const T& value) except +
    vector[at.Tensor] tensors_in[T](const T& value) except +
    at.Tensor plus_tensors[T](const at.Tensor& y, const T& value) except +
    void add_one[T](const T& value) except +


# The gradients of x and of each saved tensor, whose sum is in the result.
cdef vector[at.Tensor] gradients(Context& ctx, const at.Tensor& of_x, const at.Tensor& grad) except * nogil:
    cdef vector[at.Tensor] result
    cdef at.Tensor one
    cdef size_t i
    result.push_back(of_x)
    for i in range(ctx.saved_tensors()):
        one = ctx.saved_tensor(i)
        result.push_back(at.mul(at.ones_like(one), at.sum(grad)) if one.defined() else one)
    return result


"""

# y = x * digest(a) + the sum of each tensor in `a`, so the result and the gradient of x depend on `a`, whose tensors
# have gradients too. There are three operators: a kernel with its fake, gradient and autocast; a Function as the kernel
# for Autograd; and an Operator that calls the first.
TAKES = """\
cdef at.Tensor take_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return plus_tensors(at.mul(x, digest(a)), a)


cdef void setup_{i}(Context& ctx, const at.Tensor& x, {parameter} a, const at.Tensor& result) except * nogil:
    ctx.state[double]()[0] = digest(a)
    ctx.save_for_backward(tensors_in(a))


cdef vector[at.Tensor] backward_{i}(Context& ctx, const at.Tensor& grad) except * nogil:
    return gradients(ctx, at.mul(grad, ctx.state[double]()[0]), grad)


cdef at.Tensor forward_{i}(Context& ctx, const at.Tensor& x, {parameter} a) except * nogil:
    setup_{i}(ctx, x, a, x)
    return take_{i}(x, a)


cdef Function[at.Tensor] function_{i}
function_{i}.define("Apply{i}", forward_{i}, backward_{i})


cdef at.Tensor apply_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return function_{i}.apply(x, a)


cdef at.Tensor call_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return Operator[at.Tensor](b"schema_types::take_{i}").call(x, a)


define("schema_types::take_{i}", "(Tensor x, {schema} a) -> Tensor", Tag.pt2_compliant_tag)
impl("schema_types::take_{i}", "CPU", take_{i})
impl("schema_types::take_{i}", "Meta", take_{i})
register_autograd("schema_types::take_{i}", backward_{i}, setup_{i})
register_autocast("schema_types::take_{i}", "cpu")
define("schema_types::apply_{i}", "(Tensor x, {schema} a) -> Tensor", Tag.pt2_compliant_tag)
impl("schema_types::apply_{i}", "default", take_{i})
impl("schema_types::apply_{i}", "Autograd", apply_{i})
define("schema_types::call_{i}", "(Tensor x, {schema} a) -> Tensor")
impl("schema_types::call_{i}", "CompositeImplicitAutograd", call_{i})


"""

# An operator that changes its argument, and one that calls it.
CHANGES = """\
cdef at.Tensor change_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    add_one(a)
    return at.mul(x, digest(a))


cdef at.Tensor fake_change_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return at.mul(x, digest(a))


cdef at.Tensor call_change_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return Operator[at.Tensor](b"schema_types::change_{i}").call(x, a)


define("schema_types::change_{i}", "(Tensor x, {schema} a) -> Tensor", Tag.pt2_compliant_tag)
impl("schema_types::change_{i}", "CPU", change_{i})
impl("schema_types::change_{i}", "Meta", fake_change_{i})
define("schema_types::call_change_{i}", "(Tensor x, {schema} a) -> Tensor")
impl("schema_types::call_change_{i}", "CompositeImplicitAutograd", call_change_{i})


"""

GIVES = """\
cdef tuple2[at.Tensor, {result}] give_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    cdef {result} kept = a
    return make_tuple(at.mul(x, 2), kept)


cdef void give_setup_{i}(
        Context& ctx, const at.Tensor& x, {parameter} a, const at.Tensor& result, const {result}& given) except * nogil:
    ctx.state[size_t]()[0] = tensors_in(a).size()


cdef vector[at.Tensor] give_backward_{i}(Context& ctx, const vector[at.Tensor]& grads) except * nogil:
    cdef vector[at.Tensor] result
    result.push_back(at.mul(grads[0], 2))
    result.resize(1 + ctx.state[size_t]()[0])
    return result


cdef tuple2[at.Tensor, {result}] call_give_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return Operator[tuple2[at.Tensor, {result}]](b"schema_types::give_{i}").call(x, a)


define("schema_types::give_{i}", "(Tensor x, {schema} a) -> (Tensor, {schema})")
impl("schema_types::give_{i}", "default", give_{i})
register_autograd("schema_types::give_{i}", give_backward_{i}, give_setup_{i})
register_autocast("schema_types::give_{i}", "cpu")
define("schema_types::call_give_{i}", "(Tensor x, {schema} a) -> (Tensor, {schema})")
impl("schema_types::call_give_{i}", "CompositeImplicitAutograd", call_give_{i})


"""


def gives(one, parameter):
    """Whether an operator takes this parameter and returns it."""
    return (
        one.result is not None and parameter == [each for each in one.parameters if each not in ("float", "bint")][-1]
    )


MODULES = {
    "types_of_tensors": ("Tensor", "Tensor(a!)", "Generator"),
    "types_of_sizes": ("int", "SymInt"),
    "types_of_numbers": ("float", "bool", "Scalar"),
    "types_of_names": ("str", "ScalarType", "Device", "Layout", "MemoryFormat"),
}
"""The families of types that each module compiles."""


def pyx(module):
    """The source of a module."""
    parts = [HEAD]
    types = [one for family in MODULES[module] for one in FAMILIES[family]]
    for i, (one, parameter) in enumerate(CASES):
        if one in types:
            fields = {"i": i, "schema": one.schema, "parameter": parameter, "result": one.result}
            parts.append((CHANGES if one.changes else TAKES).format(**fields))
            if gives(one, parameter):
                parts.append(GIVES.format(**fields))
    return "".join(parts).rstrip() + "\n"
