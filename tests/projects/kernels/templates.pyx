# Functions that C++ instantiates for each dtype, and for each of several constants.
cimport ATen as at
cimport cython
cimport torch
from interop cimport (
    AT_ALL_TYPES, AT_ALL_TYPES_AND_COMPLEX, AT_BAREBONES_UNSIGNED_TYPES, AT_COMPLEX_TYPES, AT_FLOAT8_TYPES,
    AT_FLOATING_TYPES, AT_INTEGRAL_TYPES, AT_INTEGRAL_TYPES_V2, AT_REDUCED_FLOATING_TYPES, acc_t, any_t, constant_t,
    instantiate, instantiate2d, instantiate2d_with, instantiate_part, instantiate_part_with, instantiate_with,
    numeric_limits, opmath_t, scalar_t,
)
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <ATen/AccumulateType.h>
    #include <ATen/OpMathType.h>
    template <class T, class OpMath, class Sum>
    constexpr bool same = std::is_same_v<OpMath, at::opmath_type<T>> && std::is_same_v<Sum, at::acc_type<T, false>>;
    #define AS_IN_TORCH (same<INTEROP_SCALAR, interop::OpMath<INTEROP_SCALAR>, interop::Sum<INTEROP_SCALAR>>)
    """
    bint as_in_torch "AS_IN_TORCH"


cdef void _combine(char** data, const int64_t* strides, int64_t n, any_t* of) noexcept nogil:
    """2 a + b."""
    cdef int64_t i
    cdef opmath_t a, b
    for i in range(n):
        a, b = (<scalar_t*> (data[1] + i * strides[1]))[0], (<scalar_t*> (data[2] + i * strides[2]))[0]
        (<scalar_t*> (data[0] + i * strides[0]))[0] = <scalar_t> (a + a + b)


# A function that is called from a template is one, too: its `of` says for which type.
cdef void _combine2d(char** data, const int64_t* strides, int64_t n, int64_t m, any_t* of) noexcept nogil:
    cdef int64_t j, k
    cdef char* moved[3]
    for j in range(m):
        for k in range(3):
            moved[k] = data[k] + j * strides[3 + k]
        _combine(moved, strides, n, of)


def binary(torch.Tensor x not None, torch.Tensor y not None, bint two_dimensions=False):
    cdef at.Tensor out
    cdef at.TensorIterator it = at.TensorIterator.binary_op(out, x.cdata, y.cdata)
    with nogil:
        if two_dimensions:
            it.for_each(
                instantiate2d(
                    it.common_dtype(), b"combine", _combine2d, AT_ALL_TYPES_AND_COMPLEX, at.kHalf, at.kBFloat16),
                NULL)
        else:
            it.for_each(
                instantiate(
                    it.common_dtype(), b"combine", _combine, AT_ALL_TYPES, AT_COMPLEX_TYPES,
                    AT_REDUCED_FLOATING_TYPES, AT_BAREBONES_UNSIGNED_TYPES),
                NULL)
    return torch.wrap(it.output(0))


cpdef enum Reduction:
    SUM, MEAN, MIN, MAX, PROD, REDUCTIONS


cdef struct Rows:
    void* values
    void* results
    int64_t columns


cdef void _reduce(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    cdef Rows* rows = <Rows*> of
    cdef const scalar_t* row
    cdef int64_t i, j
    cdef acc_t total
    cdef scalar_t least, most
    for i in range(begin, end):
        row = <const scalar_t*> rows.values + i * rows.columns
        total = 1 if how == PROD else 0
        least, most = numeric_limits[scalar_t].upper_bound(), numeric_limits[scalar_t].lower_bound()
        for j in range(rows.columns):
            if how == SUM or how == MEAN:
                total += row[j]
            elif how == PROD:
                total *= row[j]
            elif how == MIN:
                least = row[j] if row[j] < least else least
            else:
                most = row[j] if row[j] > most else most
        if how == MEAN:
            total /= rows.columns
        if how == MIN:
            total = least
        elif how == MAX:
            total = most
        (<scalar_t*> rows.results)[i] = <scalar_t> total


def reduce_rows(torch.Tensor x not None, int64_t how):
    cdef at.Tensor t = x.cdata.contiguous()
    cdef at.Tensor results = at.empty((t.size(0),), t.options())
    cdef Rows rows
    rows.values, rows.results, rows.columns = t.data_ptr(), results.data_ptr(), t.size(1)
    with nogil:
        at.parallel_for(
            0, t.size(0), 3,
            instantiate_part_with(
                how, REDUCTIONS, t.scalar_type(), b"reduce_rows", _reduce, AT_ALL_TYPES, at.kHalf, at.kBFloat16),
            &rows)
    return torch.wrap(results)


cdef void _set(char** data, const int64_t* strides, int64_t n, constant_t number, any_t* of) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        (<scalar_t*> (data[0] + i * strides[0]))[0] = <scalar_t> <int> number


cdef void _set2d(
    char** data, const int64_t* strides, int64_t n, int64_t m, constant_t number, any_t* of
) noexcept nogil:
    cdef int64_t i, j
    for j in range(m):
        for i in range(n):
            (<scalar_t*> (data[0] + i * strides[0] + j * strides[1]))[0] = <scalar_t> <int> number


def set_to(torch.Tensor x not None, int64_t number, bint two_dimensions):
    cdef at.TensorIterator it = at.TensorIterator.nullary_op(x.cdata)
    if two_dimensions:
        it.for_each(instantiate2d_with(number, 3, it.dtype(0), b"set", _set2d, AT_INTEGRAL_TYPES_V2), NULL)
    else:
        it.for_each(instantiate_with(number, 3, it.dtype(0), b"set", _set, AT_INTEGRAL_TYPES, at.kBool), NULL)
    return x


cpdef enum Operator:
    DIVIDE, FLOOR_DIVIDE, REMAINDER, POWER, ABSOLUTE, IN_PLACE, LITERALS, OPERATORS


@cython.cdivision(True)
@cython.cpow(True)
cdef void _operate(char** data, const int64_t* strides, int64_t n, constant_t how, any_t* of) noexcept nogil:
    cdef int64_t i
    cdef scalar_t a, b, result
    for i in range(n):
        a, b = (<scalar_t*> (data[1] + i * strides[1]))[0], (<scalar_t*> (data[2] + i * strides[2]))[0]
        result = a
        if how == Operator.DIVIDE:
            result = <scalar_t> (a / b)
        elif how == Operator.FLOOR_DIVIDE:
            result = a // b
        elif how == Operator.REMAINDER:
            result = a % b
        elif how == Operator.POWER:
            result = a ** b
        elif how == Operator.ABSOLUTE:
            result = abs(a)
        elif how == Operator.IN_PLACE:
            result //= b
            result %= b
        elif how == Operator.LITERALS:
            result = (abs(a) ** 2 + 7) % 5 // 2 if a > 3 else -1 + a
        (<scalar_t*> (data[0] + i * strides[0]))[0] = result


def operate(torch.Tensor x not None, torch.Tensor y not None, int how):
    cdef at.Tensor out
    cdef at.TensorIterator it = at.TensorIterator.binary_op(out, x.cdata, y.cdata)
    it.for_each(
        instantiate_with(
            how, Operator.OPERATORS, it.common_dtype(), b"operate", _operate,
            AT_ALL_TYPES, AT_BAREBONES_UNSIGNED_TYPES, AT_REDUCED_FLOATING_TYPES), NULL)
    return torch.wrap(it.output(0))


# Expressions of several types. The test computes each in Python, as it is written here.
cdef int64_t n, m
cdef double mixed_result


cdef void _mix(int64_t begin, int64_t end, constant_t which, any_t* of) noexcept nogil:
    global mixed_result
    cdef scalar_t a = (<scalar_t*> of)[0], b = (<scalar_t*> of)[1]
    cdef opmath_t o = a
    cdef acc_t t = b
    if which == 0:
        mixed_result = <double> (a % 256)
    elif which == 1:
        mixed_result = <double> (a // n)
    elif which == 2:
        mixed_result = <double> (a % n)
    elif which == 3:
        mixed_result = <double> ((a - n) / 2)
    elif which == 4:
        mixed_result = <double> (a / b / 2)
    elif which == 5:
        mixed_result = <double> (a / (1 / b))
    elif which == 6:
        mixed_result = <double> ((a / b) ** 2)
    elif which == 7:
        mixed_result = <double> (o / 2.5)
    elif which == 8:
        mixed_result = <double> (o // 0.5)
    elif which == 9:
        mixed_result = <double> (o % 0.5)
    elif which == 10:
        mixed_result = <double> ((o * 0.5) / b)
    elif which == 11:
        mixed_result = <double> (t / o)
    elif which == 12:
        mixed_result = <double> (t // o)
    elif which == 13:
        mixed_result = <double> (o / t)
    elif which == 14:
        mixed_result = <double> (max(n, a))
    elif which == 15:
        mixed_result = <double> (max(300, a))
    elif which == 16:
        mixed_result = <double> (max(0.5, o))
    elif which == 17:
        mixed_result = <double> (min(o, 0.5))
    elif which == 18:
        mixed_result = <double> (a if a < b else n)
    elif which == 19:
        mixed_result = <double> (o if a < t else 0.5)
    elif which == 20:
        mixed_result = <double> (abs(a) ** 3)
    elif which == 21:
        mixed_result = <double> (a ** m)
    elif which == 22:
        mixed_result = <double> (a // 0.1)
    elif which == 23:
        mixed_result = <double> (a % -0.5)
    elif which == 24:
        mixed_result = <double> (1 if 0 < a / 4 < 1 else 0)
    elif which == 25:
        mixed_result = <double> (abs(a / b) + n)
    elif which == 26:
        mixed_result = <double> (-a / b)
    elif which == 27:
        mixed_result = <double> (a * 3 - n)
    elif which == 28:
        mixed_result = <double> (t * 1000 % 7)
    elif which == 29:
        mixed_result = <double> (a // b % 3 + a % b // 2)
    elif which == 30:
        o //= b
        o **= m
        t %= n
        mixed_result = <double> (o + t)


def mix(int which, torch.Tensor x not None, int64_t integer, int64_t small):
    """Expression `which` of the two elements of x and two integers, as a float."""
    global n, m
    n, m = integer, small
    instantiate_part_with(
        which, 31, x.cdata.scalar_type(), b"mix", _mix, AT_ALL_TYPES, AT_REDUCED_FLOATING_TYPES)(
            0, 1, x.cdata.data_ptr())
    return mixed_result


@cython.cdivision(True)
cdef void _complex(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    cdef scalar_t a = (<scalar_t*> of)[0], b = (<scalar_t*> of)[1]
    (<scalar_t*> of)[0] = (7 + a / b) ** 2 * abs(a) - 1


def complex_numbers(torch.Tensor x not None):
    instantiate_part(x.cdata.scalar_type(), b"complex_numbers", _complex, AT_COMPLEX_TYPES)(0, 1, x.cdata.data_ptr())
    return x[0]


# Sums, products and a quotient in acc_t, of elements of a smaller type.
cdef void _accumulate(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    cdef scalar_t* values = <scalar_t*> of
    cdef acc_t total = 0, product = 1, back = 0
    cdef opmath_t negative = 0
    cdef int64_t i
    for i in range(3):
        total += values[i]
        product *= values[i]
        negative -= values[i]
        back = values[i] + back - values[i] * 2 + (values[i] - back)
    values[3] = <scalar_t> total
    values[4] = <scalar_t> product
    values[5] = <scalar_t> negative
    values[6] = <scalar_t> back
    values[7] = <scalar_t> (total / values[1])


def accumulate(torch.Tensor x not None):
    instantiate_part(
        x.cdata.scalar_type(), b"accumulate", _accumulate, AT_ALL_TYPES_AND_COMPLEX, AT_REDUCED_FLOATING_TYPES,
        at.kComplexHalf, at.kFloat8_e5m2, at.kFloat8_e5m2fnuz, at.kFloat8_e4m3fn, at.kFloat8_e4m3fnuz)(
            0, 1, x.cdata.data_ptr())
    return torch.wrap(x.cdata)


# A real factor of another type beside a complex number.
cdef void _scale(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    cdef scalar_t* values = <scalar_t*> of
    cdef double two = 2
    cdef float half = 0.5
    values[0] = <scalar_t> ((two * values[0] - values[0] * half) * half + two)


def scale(torch.Tensor x not None):
    instantiate_part(x.cdata.scalar_type(), b"scale", _scale, AT_COMPLEX_TYPES)(0, 1, x.cdata.data_ptr())


cdef struct Limits:
    double lowest, max, min, epsilon, lower_bound, upper_bound


cdef void _limits(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    cdef Limits* limits = <Limits*> of
    limits.lowest, limits.max = numeric_limits[scalar_t].lowest(), numeric_limits[scalar_t].max()
    limits.min, limits.epsilon = numeric_limits[scalar_t].min(), numeric_limits[scalar_t].epsilon()
    limits.lower_bound = numeric_limits[scalar_t].lower_bound()
    limits.upper_bound = numeric_limits[scalar_t].upper_bound()


cdef void _as_in_torch(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    (<bint*> of)[0] = as_in_torch


def limits(torch.Tensor x not None):
    cdef Limits found
    instantiate_part(
        x.cdata.scalar_type(), b"limits", _limits, AT_ALL_TYPES, AT_REDUCED_FLOATING_TYPES, AT_FLOAT8_TYPES)(
            0, 1, &found)
    return found


def accumulates_as_torch(torch.Tensor x not None):
    cdef bint found = False
    instantiate_part(
        x.cdata.scalar_type(), b"types", _as_in_torch, AT_ALL_TYPES_AND_COMPLEX, AT_REDUCED_FLOATING_TYPES, at.kBool,
        at.kComplexHalf, at.kFloat8_e5m2, at.kFloat8_e5m2fnuz, at.kFloat8_e4m3fn, at.kFloat8_e4m3fnuz)(
            0, 1, &found)
    return found


# `except *` and the GIL: a template is a function of Cython like any other.
cdef void _raise(int64_t begin, int64_t end, any_t* of) except * nogil:
    cdef opmath_t half = 0.5
    with gil:
        raise KeyError(f"half is {<double> half}")


def fail(torch.Tensor x not None):
    at.parallel_for(
        0, 100, 1, instantiate_part(x.cdata.scalar_type(), b"fail", _raise, AT_FLOATING_TYPES), x.cdata.data_ptr())
