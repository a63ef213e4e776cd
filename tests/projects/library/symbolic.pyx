# Operators that torch.compile traces with symbolic sizes: those that keep the symbols, and those that ask for a number.
cimport ATen as at
cimport torch
from interop cimport (
    check, check_index, check_linalg, check_not_implemented, check_type, check_value, dims, floordiv, indices, mod,
)
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector
from torch.autograd cimport Context
from torch.library cimport Operator, Tag, define, impl, register_autograd


# The sum of each row; the gradient needs the size.

cdef at.Tensor rows(const at.Tensor& x) except * nogil:
    return at.sum(x, 1)


cdef at.Tensor rows_meta(const at.Tensor& x) except * nogil:
    return at.empty_symint((x.sym_size(0),), x.options())


cdef void rows_setup(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.state[vector[at.SymInt]]()[0] = x.sym_sizes().vec()


cdef at.Tensor rows_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return grad.unsqueeze(1).expand_symint((-1, ctx.state[vector[at.SymInt]]()[0][1]))


define("interop_symbolic::rows", "(Tensor x) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_symbolic::rows", "CPU", rows)
impl("interop_symbolic::rows", "Meta", rows_meta)
register_autograd("interop_symbolic::rows", rows_backward, rows_setup)


# Saved values by name: a struct of everything that compiled autograd can copy, and names for the tensors.

cdef struct Kept:
    vector[at.SymInt] sizes
    at.SymInt stop
    optional[at.SymInt] step
    vector[double] factors
    vector[cbool] signs
    string name
    int64_t power


cdef enum Saved:
    X, WEIGHT


cdef at.Tensor every(
        const at.Tensor& x, const at.Tensor& weight, const at.SymInt& stop, optional[at.SymInt] step,
        const vector[double]& factors, const vector[cbool]& signs, const string& name, int64_t power) except * nogil:
    cdef at.Tensor y = at.slice_symint(x, 0, 0, stop, step.value_or(at.SymInt(1)))
    return at.mul(at.mul(y, weight), factor_of(factors, signs, name, power))


cdef double factor_of(
        const vector[double]& factors, const vector[cbool]& signs, const string& name, int64_t power) noexcept nogil:
    cdef double factor = name.size()
    cdef size_t i
    cdef int64_t _j
    for i in range(factors.size()):
        for _j in range(power):
            factor *= factors[i]
        if signs[i]:
            factor = -factor
    return factor


cdef void every_setup(
        Context& ctx, const at.Tensor& x, const at.Tensor& weight, const at.SymInt& stop, optional[at.SymInt] step,
        const vector[double]& factors, const vector[cbool]& signs, const string& name, int64_t power,
        const at.Tensor& result) except * nogil:
    cdef Kept* kept = ctx.state[Kept]()
    kept.sizes = x.sym_sizes().vec()
    kept.stop = stop
    kept.step = step
    kept.factors = factors
    kept.signs = signs
    kept.name = name
    kept.power = power
    ctx.save_for_backward(x, weight)


cdef vector[at.Tensor] every_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Kept* kept = ctx.state[Kept]()
    cdef at.SymInt step = kept.step.value_or(at.SymInt(1))
    cdef at.Tensor scaled = at.mul(grad, factor_of(kept.factors, kept.signs, kept.name, kept.power))
    cdef vector[at.Tensor] grads
    grads.push_back(at.mul(
        at.slice_backward_symint(scaled, kept.sizes, 0, 0, kept.stop, step), ctx.saved_tensor(Saved.WEIGHT)))
    grads.push_back(at.sum(at.mul(scaled, at.slice_symint(ctx.saved_tensor(Saved.X), 0, 0, kept.stop, step))))
    grads.resize(8)
    return grads


define(
    "interop_symbolic::every",
    "(Tensor x, Tensor weight, SymInt stop, SymInt? step, float[] factors, bool[] signs, str name, int power) "
    "-> Tensor",
    Tag.pt2_compliant_tag)
impl("interop_symbolic::every", "default", every)
register_autograd("interop_symbolic::every", every_backward, every_setup)


# Made of operators: torch traces into it. Each row of x, as often as makes n rows of them.

cdef at.Tensor stretched(const at.Tensor& x, const at.SymInt& n) except * nogil:
    check_value(n.sym_ge(0), b"n must not be negative, got ", n)
    cdef at.SymInt size = x.sym_size(0), times = floordiv(n + size - 1, size)
    return at.slice_symint(at.repeat_interleave_symint(x, times, 0), 0, 0, (2 * n + n) - 2 * n)


define("interop_symbolic::stretched", "(Tensor x, SymInt n) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_symbolic::stretched", "CompositeImplicitAutograd", stretched)


# Python's // and %, as sizes of two tensors.

cdef (at.Tensor, at.Tensor) divided(const at.Tensor& x, at.SymInt a, at.SymInt b) except * nogil:
    return x.new_empty_symint((floordiv(a, b) + 100,)), x.new_empty_symint((mod(a, b) + 100,))


define("interop_symbolic::divided", "(Tensor x, SymInt a, SymInt b) -> (Tensor, Tensor)", Tag.pt2_compliant_tag)
impl("interop_symbolic::divided", "CompositeImplicitAutograd", divided)


cdef vector[at.SymInt] shape(const at.Tensor& x) except * nogil:
    return x.sym_sizes().vec()


define("interop_symbolic::shape", "(Tensor x) -> SymInt[]", Tag.pt2_compliant_tag)
impl("interop_symbolic::shape", "CompositeImplicitAutograd", shape)


def rank_and_rows(torch.Tensor x):
    cdef vector[at.SymInt] sizes = Operator[vector[at.SymInt]](b"interop_symbolic::shape").call(x.cdata)
    return sizes.size(), sizes[0].guard_int(b"symbolic.pyx", 1)


# A SymInt for a kernel of the CPU, which is a number there, and the same through Operator.

cdef at.Tensor zeros(const at.Tensor& x, int64_t n) except * nogil:
    return at.zeros((n, x.size(0)))


cdef at.Tensor zeros_meta(const at.Tensor& x, at.SymInt n) except * nogil:
    return at.empty_symint((n, x.sym_size(0)), x.options())


cdef at.Tensor zeros_called(const at.Tensor& x) except * nogil:
    return Operator[at.Tensor](b"interop_symbolic::zeros").call(x, x.sym_numel() + 1)


define("interop_symbolic::zeros", "(Tensor x, SymInt n) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_symbolic::zeros", "CPU", zeros)
impl("interop_symbolic::zeros", "Meta", zeros_meta)
define("interop_symbolic::zeros_called", "(Tensor x) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_symbolic::zeros_called", "CompositeImplicitAutograd", zeros_called)


# Those that ask for a number, each in a line of its own.

cdef at.Tensor number_of(const at.Tensor& x, int64_t what) except * nogil:
    cdef int64_t n = 0
    if what == 0:
        n = x.size(0)
    elif what == 1:
        n = x.numel()
    elif what == 2:
        n = x.stride(0)
    elif what == 3:
        n = x.sizes()[0]
    elif what == 4:
        n = x.strides()[0]
    elif what == 5:
        n = at.size(x, 0)
    elif what == 6:
        n = <int64_t> x.nbytes()
    elif what == 7:
        n = x.sym_size(0).guard_int(b"symbolic.pyx", 1)  # requested: compiled for each size
    return at.mul(x, n)


define("interop_symbolic::number_of", "(Tensor x, int what) -> Tensor")
impl("interop_symbolic::number_of", "CompositeExplicitAutograd", number_of)


cdef void number_setup(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.state[int64_t]()[0] = x.size(1)


cdef at.Tensor number_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return grad.unsqueeze(1).expand((-1, ctx.state[int64_t]()[0]))


define("interop_symbolic::number_in_setup", "(Tensor x) -> Tensor")
impl("interop_symbolic::number_in_setup", "CPU", rows)
impl("interop_symbolic::number_in_setup", "Meta", rows_meta)
register_autograd("interop_symbolic::number_in_setup", number_backward, number_setup)

define("interop_symbolic::number_taken", "(Tensor x, SymInt n) -> Tensor")
impl("interop_symbolic::number_taken", "CompositeExplicitAutograd", zeros)

define("interop_symbolic::number_above_autograd", "(Tensor x, SymInt n) -> Tensor")
impl("interop_symbolic::number_above_autograd", "Autograd", zeros)


cdef void taken_setup(Context& ctx, const at.Tensor& x, int64_t n, const at.Tensor& result) except * nogil:
    pass


cdef (at.Tensor, at.Tensor) taken_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.Tensor(), at.Tensor()


define("interop_symbolic::number_taken_in_setup", "(Tensor x, SymInt n) -> Tensor")
impl("interop_symbolic::number_taken_in_setup", "CPU", zeros)
impl("interop_symbolic::number_taken_in_setup", "Meta", zeros_meta)
register_autograd("interop_symbolic::number_taken_in_setup", taken_backward, taken_setup)


# A size as a number among others. The test has the same expressions in the same order.

cdef at.Tensor as_number(const at.Tensor& x, int64_t what) except * nogil:
    cdef at.SymInt n = x.sym_size(0), m = n
    cdef vector[at.SymInt] v = x.sym_sizes().vec()
    cdef at.SymFloat half = n * 0.5 + 1.0 - 2.0, root = (1.0 * n).sqrt()
    m -= 1
    m -= n - n
    check(half != root and half < 1e9 and root > 0.5, b"compares floats with numbers")
    check(half <= half.max(root) and half >= half.min(root) and half >= half.min(1e9), b"compares floats")
    check(half.sym_lt(1e9), b"must be less than 1e9")
    check(0 < n and 1 <= n and 0 != n and not (0 == n or 0 > n or 0 >= n), b"compares a number with a size")
    if what == 0:
        return x + n
    elif what == 1:
        return n + x
    elif what == 2:
        return x - n
    elif what == 3:
        return n - x
    elif what == 4:
        return x * n
    elif what == 5:
        return n * x
    elif what == 6:
        return x / n
    elif what == 7:
        return n / x
    elif what == 8:
        return x < n
    elif what == 9:
        return x == v[0]
    elif what == 10:
        return at.mul(x, at.Scalar(n))
    elif what == 11:
        return at.where(x > 0, x, n)
    elif what == 12:
        return at.where(x > 0, 1.0 / n, x)
    elif what == 13:
        return at.arange(n, x.options())
    elif what == 14:
        return at.arange(1, n, x.options())
    elif what == 15:
        return at.full_symint((n, 2), n, x.options())
    elif what == 16:
        return at.full_symint((n,), 1.0 / n, x.options())
    elif what == 17:
        return x * (1.0 / n)
    elif what == 18:
        return (n / 4.0) * x
    elif what == 19:
        return x - half / 2
    elif what == 20:
        return x / root
    elif what == 21:
        return x.index(indices(at.Slice(1, n)))
    elif what == 22:
        return x.index(indices(at.Slice(n - 2)))
    elif what == 23:
        return x.index(indices(at.Slice(at.None_, n - 1, 2)))
    elif what == 24:
        return x.index(indices(at.Slice(n - 3, n)))
    elif what == 25:
        return x.index(indices(n - 2))
    elif what == 26:
        return at.select_symint(x, 0, n - 2)
    elif what == 27:
        return x.clone().index_put_(indices(at.Slice(0, 2)), n)
    elif what == 28:
        return x.new_empty_symint((n - (m - 1),)).zero_()
    return x


define("interop_symbolic::as_number", "(Tensor x, int what) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_symbolic::as_number", "CompositeImplicitAutograd", as_number)


# The gradient of a mean.

cdef at.Tensor mean(const at.Tensor& x) except * nogil:
    return at.mean(x)


cdef at.Tensor mean_meta(const at.Tensor& x) except * nogil:
    return x.new_empty(dims())


cdef void mean_setup(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.state[at.SymInt]()[0] = x.sym_size(0)


cdef at.Tensor mean_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.SymInt n = ctx.state[at.SymInt]()[0]
    return (grad * (1.0 / n)).expand_symint((n,))


define("interop_symbolic::mean", "(Tensor x) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_symbolic::mean", "CPU", mean)
impl("interop_symbolic::mean", "Meta", mean_meta)
register_autograd("interop_symbolic::mean", mean_backward, mean_setup)


# Conditions, without the GIL.

cdef int64_t checked(const at.Tensor& x, int64_t what) except -1 nogil:
    cdef const char* text = b"text"
    cdef at.SymInt n = x.sym_size(0)
    check(what != 0, b"sizes ", x.sizes(), b" of ", x.scalar_type(), b" on ", x.device())
    check_index(what != 1, b"index ", what, b" of ", text)
    check_type(what != 2, b"a type")
    check_value(what != 3, b"n is ", n, b", not ", 0.5)
    check_not_implemented(what != 4, b"only that")
    check_linalg(what != 6, b"the matrix of sizes ", x.sizes(), b" is singular")
    check(what != 7, b"index ", x.device().index(), b" of a device")
    check_value(n.sym_le(what), b"at most ", what)
    return what


def check_what(torch.Tensor x not None, int64_t what):
    cdef at.Tensor t = x.cdata
    with nogil:
        what = checked(t, what)
    return what


# What is known of a tensor of a given size, by the methods that may give symbols.

def known(torch.Tensor x not None, int64_t dim):
    cdef at.Tensor t = x.cdata
    return {
        "size": t.sym_size(dim).maybe_as_int().value(),
        "stride": t.sym_stride(dim).maybe_as_int().value(),
        "numel": t.sym_numel().maybe_as_int().value(),
        "storage_offset": t.sym_storage_offset().maybe_as_int().value(),
        "nbytes": t.sym_nbytes().maybe_as_int().value(),
        "is_contiguous": t.sym_is_contiguous().maybe_as_bool().value(),
        "is_channels_last": t.sym_is_contiguous(at.MemoryFormat.ChannelsLast).maybe_as_bool().value(),
    }
