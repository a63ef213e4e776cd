"""Every type of a schema, its declaration in a Cython kernel, and operators that take and return it.

tools/schema_table.py prints this table for docs/operators-guide.md. To add a type, add it to FAMILIES.
"""

from dataclasses import dataclass, replace

import torch

NO_LISTS = ("", "?")
LISTS = ("", "?", "[]", "[]?", "[2]", "?[]")


@dataclass(frozen=True)
class Type:
    """A type of a schema: the declarations of a parameter, the one in the guide first, and of a result."""

    schema: str
    parameters: tuple[str, ...]
    result: str | None
    values: tuple
    fails: str = ""
    """The test of torch.library.opcheck that fails for this type, also for an operator written in Python."""

    @property
    def changes(self):
        """Whether the operator changes the argument."""
        return "!" in self.schema


def family(name, cython, values, forms, *, also=None, by_reference=False, result=True, fails=None):
    """A type and its optional and lists, as far as `forms` names them; `also` has other parameters for a form."""
    found = []
    for form in forms:
        plain = {
            "": cython,
            "?": f"optional[{cython}]",
            "[]": f"vector[{cython}]",
            "[]?": f"optional[vector[{cython}]]",
            "?[]": f"vector[optional[{cython}]]",
        }[form.replace("[2]", "[]")]
        parameters = (f"const {plain}&" if by_reference or "[" in form else plain, *(also or {}).get(form, ()))
        made = {
            "": values,
            "?": (None, *values),
            "[]": ([], [*values]),
            "[]?": (None, [*values]),
            "[2]": ([*values[:2]],),
            "[2]?": (None, [*values[:2]]),
            "?[]": ([], [None, *values]),
        }[form]
        found.append(Type(name + form, parameters, plain if result else None, made, (fails or {}).get(form, "")))
    return found


def numbers(name, reference, cython):
    """Integers, whose lists also have their own type."""
    also = {"[]": (reference,), "[2]": (reference,)}
    found = family(name, cython, (3, -7), (*LISTS, "[2]?"), also=also)
    return [replace(one, parameters=one.parameters[::-1]) for one in found]  # the guide recommends what borrows


TENSORS = tuple(torch.full(shape, 0.5) for shape in ((), (2,), (2, 3)))

OF_ENUMS = {"[]": "test_schema", "[2]": "test_schema"}

FAMILIES = {
    "Tensor": [
        *family("Tensor", "at.Tensor", TENSORS, ("", "?", "[]", "[2]"), by_reference=True),
        *family("Tensor", "at.Tensor", TENSORS, ("[]?",), result=False),  # as a result it has no gradient
        Type("Tensor?[]", ("const vector[optional[at.Tensor]]&",), None, ([], [None, *TENSORS])),
        Type("Tensor?[]?", ("const optional[vector[optional[at.Tensor]]]&",), None, (None, [None, *TENSORS])),
    ],
    "Tensor(a!)": [
        Type("Tensor(a!)", ("at.Tensor&",), None, TENSORS),
        Type("Tensor(a!)?", ("const optional[at.Tensor]&",), None, (None, *TENSORS)),
        *family("Tensor(a!)", "at.Tensor", TENSORS, ("[]", "[]?", "[2]"), result=False),
        *family("Tensor(a!)", "at.Tensor", TENSORS, ("?[]",), result=False, fails={"?[]": "test_aot_dispatch_dynamic"}),
    ],
    "int": numbers("int", "at.IntArrayRef", "int64_t"),
    "SymInt": numbers("SymInt", "at.SymIntArrayRef", "at.SymInt"),
    "float": family("float", "double", (0.5, -2.0), LISTS, also={"": ("float",)}),
    "bool": family("bool", "cbool", (True, False), LISTS, also={"": ("bint",), "[2]": ("BoolArray2",)}),
    "Scalar": [
        *family("Scalar", "at.Scalar", (3, 0.5, True), NO_LISTS, by_reference=True),
        *family("Scalar", "at.Scalar", (3, 0.5, True), LISTS[2:], result=False),  # no C++ kernel returns such a list
    ],
    "str": family("str", "string", ("", "text"), LISTS, by_reference=True),
    "ScalarType": family("ScalarType", "at.ScalarType", (torch.float64, torch.int8), LISTS, fails=OF_ENUMS),
    "Device": family("Device", "at.Device", (torch.device("cpu"), torch.device("cuda:1")), LISTS),
    "Layout": family("Layout", "at.Layout", (torch.strided, torch.sparse_coo), (*LISTS[:4], "?[]"), fails=OF_ENUMS),
    "MemoryFormat": family(
        "MemoryFormat", "at.MemoryFormat", (torch.contiguous_format, torch.channels_last), (*LISTS[:4], "?[]")
    ),
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
        return float(SEEN[value])
    return float(value)


REASONS = {
    "test_schema": "Unable to cast Python instance of type <class 'list'> to C++ type",
    "test_aot_dispatch_dynamic": "'dict' object has no attribute 'append'",
}
"""What torch says if it cannot check a type, for each test of torch.library.opcheck."""

# The values of C++'s enums.
SEEN = {
    torch.float64: 7, torch.int8: 1, torch.strided: 0, torch.sparse_coo: 1, torch.contiguous_format: 0,
    torch.channels_last: 2,
}  # fmt: skip

HEAD = """\
cimport ATen as at
cimport torch
from interop cimport BoolArray2, make_tuple, tuple2
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector
from torch.autograd cimport Context, Function
from torch.library cimport (
    Operator, Tag, VmapInfo, define, impl, register_autocast, register_autograd, register_vmap,
)


cdef extern from "digest.h" nogil:
    double digest[T](const T& value) except +
    vector[at.Tensor] tensors_in[T](const T& value) except +
    at.Tensor plus_tensors[T](const at.Tensor& y, const T& value) except +
    void add_one[T](const T& value) except +


cdef at.Tensor unfit(const at.Tensor& x, const vector[vector[int64_t]]& a) except * nogil:
    return x


# Registers a kernel that fits none of these operators.
def register_unfit(name):
    impl(name.encode(), b"CUDA", unfit)


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
# have gradients too. There are three operators: a kernel with its fake, gradient, rule and autocast; a Function as the
# kernel for Autograd; and an Operator that calls the first.
TAKES = """\
cdef at.Tensor take_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return plus_tensors(at.mul(x, digest(a)), a)


cdef void setup_{i}(Context& ctx, const at.Tensor& x, {parameter} a, const at.Tensor& result) except * nogil:
    ctx.state[double]()[0] = digest(a)
    ctx.save_for_backward(tensors_in(a))


cdef vector[at.Tensor] backward_{i}(Context& ctx, const at.Tensor& grad) except * nogil:
    return gradients(ctx, at.mul(grad, ctx.state[double]()[0]), grad)


cdef at.Tensor rule_{i}(VmapInfo& info, const at.Tensor& x, {parameter} a) except * nogil:
    return take_{i}(x, a)


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
register_vmap("schema_types::take_{i}", rule_{i})
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


cdef tuple2[at.Tensor, {result}] give_rule_{i}(VmapInfo& info, const at.Tensor& x, {parameter} a) except * nogil:
    info.set_out_dim(1, -1)
    return give_{i}(x, a)


cdef tuple2[at.Tensor, {result}] call_give_{i}(const at.Tensor& x, {parameter} a) except * nogil:
    return Operator[tuple2[at.Tensor, {result}]](b"schema_types::give_{i}").call(x, a)


define("schema_types::give_{i}", "(Tensor x, {schema} a) -> (Tensor, {schema})")
impl("schema_types::give_{i}", "default", give_{i})
register_autograd("schema_types::give_{i}", give_backward_{i}, give_setup_{i})
register_vmap("schema_types::give_{i}", give_rule_{i})
register_autocast("schema_types::give_{i}", "cpu")
define("schema_types::call_give_{i}", "(Tensor x, {schema} a) -> (Tensor, {schema})")
impl("schema_types::call_give_{i}", "CompositeImplicitAutograd", call_give_{i})


"""


def gives(one, parameter):
    """Whether an operator takes this parameter and returns it."""
    return parameter.removeprefix("const ").removesuffix("&") == one.result


MODULES = {
    "types_of_tensors": ("Tensor", "Tensor(a!)", "Generator"),
    "types_of_sizes": ("int", "SymInt"),
    "types_of_numbers": ("float", "bool", "Scalar"),
    "types_of_names": ("str", "Device"),
    "types_of_enums": ("ScalarType", "Layout", "MemoryFormat"),
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
