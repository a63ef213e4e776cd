"""Operators that are registered once, for many releases of torch: tests/stable/checks.py calls them."""

cimport ATen as at
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector
cimport torch.stable as st
from torch.library cimport define, impl, register_autograd

import torch as pytorch


cdef at.Tensor scaled_mm(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    if s < 0:
        with gil:
            raise ValueError("s must not be negative")
    return at.mul(at.mm(a, b), s)


cdef at.Tensor scaled_mm_meta(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mm(a, b)


def scaled_mm_setup(ctx, inputs, output):
    a, b, ctx.s = inputs
    ctx.save_for_backward(a, b)


def scaled_mm_backward(ctx, grad):
    a, b = ctx.saved_tensors
    mm = pytorch.ops.stable_operators.scaled_mm
    return mm(grad, b.t(), ctx.s), mm(a.t(), grad, ctx.s), None


define("stable_operators::scaled_mm", "(Tensor a, Tensor b, float s=1.0) -> Tensor")
impl("stable_operators::scaled_mm", "CPU", scaled_mm)
impl("stable_operators::scaled_mm", "Meta", scaled_mm_meta)
register_autograd("stable_operators::scaled_mm", scaled_mm_backward, scaled_mm_setup)


cdef at.Tensor handling(const at.Tensor& x) except * nogil:
    """An error that a kernel handles itself."""
    cdef at.Tensor y
    with gil:
        try:
            with nogil:
                y = at.clamp(x, None, None)
        except (RuntimeError, ValueError):
            with nogil:
                y = at.neg(x)
    return y


define("stable_operators::handling", "(Tensor x) -> Tensor")
impl("stable_operators::handling", "CPU", handling)


cdef (at.Tensor, int64_t) all_types(
        const vector[at.Tensor]& xs, optional[double] s, const string& name, bint flag, const vector[int64_t]& dims,
        const optional[at.Tensor]& y, at.ScalarType dtype, int32_t small) except * nogil:
    cdef at.Tensor total = at.zeros_like(xs[0])
    cdef size_t i
    for i in range(xs.size()):
        total = at.add(total, xs[i])
    if y.has_value():
        total = at.add(total, y.value())
    if flag:
        total = at.neg(total)
    return total.to(dtype), <int64_t>(dims.size() + name.size()) + (<int64_t>s.value() if s.has_value() else small)


define(
    "stable_operators::all_types",
    "(Tensor[] xs, float? s, str name, bool flag, int[] dims, Tensor? y, ScalarType dtype, int small) -> (Tensor, int)",
)
impl("stable_operators::all_types", "CompositeExplicitAutograd", all_types)


cdef int64_t folded(at.IntArrayRef dims, optional[at.IntArrayRef] more) except * nogil:
    cdef int64_t total = 0
    cdef at.IntArrayRef others
    cdef size_t i
    if more.has_value():
        others = more.value()
    for i in range(dims.size()):
        total = 10 * total + dims[i]
    for i in range(others.size()):
        total = 10 * total + others[i]
    return total


define("stable_operators::folded", "(int[] dims, int[]? more) -> int")
impl("stable_operators::folded", "CompositeExplicitAutograd", folded)


cdef double narrowed(
        int32_t n, const at.Tensor& x, const vector[float]& floats, const vector[int32_t]& ints,
        optional[int32_t] m) except * nogil:
    cdef double total = n
    cdef size_t i
    for i in range(floats.size()):
        total += floats[i]
    for i in range(ints.size()):
        total += ints[i]
    return total + m.value_or(0)


define("stable_operators::narrowed", "(int n, Tensor x, float[] floats, int[] ints, int? m) -> float")
impl("stable_operators::narrowed", "CompositeExplicitAutograd", narrowed)


cdef bint has_bit(int64_t n) except * nogil:
    return n & 256


define("stable_operators::has_bit.of_int", "(int n) -> bool")
impl("stable_operators::has_bit.of_int", "CompositeExplicitAutograd", has_bit)


# The same C int for an element of a list and for the value of an optional.
cdef vector[int] bits(int64_t n) except * nogil:
    cdef vector[int] found
    cdef int64_t i
    for i in range(12):
        found.push_back(n & (1 << i))
    return found


define("stable_operators::bits.of_int", "(int n) -> bool[]")
impl("stable_operators::bits.of_int", "CompositeExplicitAutograd", bits)


cdef optional[int] bit(int64_t n, int64_t i) except * nogil:
    return optional[int](n & (1 << i)) if i < 12 else optional[int]()


define("stable_operators::bit.of_int", "(int n, int i) -> bool?")
impl("stable_operators::bit.of_int", "CompositeExplicitAutograd", bit)


cdef (vector[uint64_t], optional[uint64_t]) unsigned_numbers(const vector[int64_t]& numbers) except * nogil:
    """The numbers as uint64, in a list, and the first of them."""
    cdef vector[uint64_t] wrapped
    cdef size_t i
    for i in range(numbers.size()):
        wrapped.push_back(<uint64_t> numbers[i])
    return wrapped, optional[uint64_t](wrapped[0]) if wrapped.size() else optional[uint64_t]()


define("stable_operators::unsigned_numbers", "(int[] numbers) -> (int[], int?)")
impl("stable_operators::unsigned_numbers", "CompositeExplicitAutograd", unsigned_numbers)


cdef (at.Tensor, uint64_t) counted(const at.Tensor& x, int64_t n) except * nogil:
    return x, <uint64_t> n


define("stable_operators::counted", "(Tensor x, int n) -> (Tensor, int)")
impl("stable_operators::counted", "CompositeExplicitAutograd", counted)


ERRORS = (IndexError, TypeError, ValueError, NotImplementedError, MemoryError, KeyError, RuntimeError)
MESSAGE = "first line\n\nlast line"


cdef void failing(int64_t which) except * nogil:
    """Raise one of ERRORS, or below 0 an error of torch's, or of a check of ours."""
    if which >= 0:
        with gil:
            raise ERRORS[which](MESSAGE)
    if which == -1:
        at.cat(vector[at.Tensor](), 0)
    at.empty((1,), at.TensorOptions()).size(-which)


st.define("stable_operators::failing", "(int which) -> ()")
st.impl("stable_operators::failing", "CompositeExplicitAutograd", failing)


cdef (int64_t, at.Tensor) swapped(const at.Tensor& x) except * nogil:
    return 1, x


define("stable_operators::swapped", "(Tensor x) -> (Tensor, int)")


def wrong_results():
    impl("stable_operators::swapped", "CPU", swapped)


cdef void add_one(at.Tensor& x) except * nogil:
    x.add_(1)


define("stable_operators::add_one", "(Tensor(a!) x) -> ()")
impl("stable_operators::add_one", "cpu", add_one)


cdef void double_in_memory(at.Tensor& x, const vector[at.Tensor]& others) except * nogil:
    """Writes that no operator of ATen's makes."""
    cdef double* memory = x.mutable_data_ptr[double]()
    cdef int64_t i
    for i in range(x.numel()):
        memory[i] *= 2
    if others.size():
        others[0].mutable_data_ptr[double]()[0] = 0


define("stable_operators::double_in_memory", "(Tensor(a!) x, *, Tensor(b!)[] others) -> ()")
impl("stable_operators::double_in_memory", "CPU", double_in_memory)


cdef void fail_after_a_change(at.Tensor& x, const at.Tensor& keys) except * nogil:
    x.mutable_data_ptr[double]()[0] = 2
    with gil:
        raise RuntimeError("of the keys")


define("stable_operators::fail_after_a_change", "(Tensor(a!) x, *, Tensor keys) -> ()")
impl("stable_operators::fail_after_a_change", "CPU", fail_after_a_change)


def wrong_number_of_parameters():
    impl("stable_operators::scaled_mm", "CUDA", add_one)


cdef void of_a_number(int64_t x) except * nogil:
    pass


def wrong_type_of_a_parameter():
    impl("stable_operators::add_one", "CUDA", of_a_number)


def wrong_name():
    impl("add_one", "CUDA", add_one)
