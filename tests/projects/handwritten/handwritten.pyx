# What torch writes by hand of ATen, used as its users would; tests/cython/test_handwritten.py compares with torch.
"""Indices, accessors, settings, generators, storages and scalars in Cython."""

cimport torch
cimport ATen as at
cimport interop
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector


# Indices.

cdef at.Tensor _read(at.Tensor t, object index):
    cdef vector[at.TensorIndex] where
    for part in index:
        interop.add_index(where, part)
    with nogil:
        t = t.index(where)
    return t


def read(torch.Tensor x not None, *index):
    """x[index], of any number of Python objects."""
    return torch.wrap(_read(x.cdata, index))


def write(torch.Tensor x not None, index, value):
    """x[index] = value."""
    cdef vector[at.TensorIndex] where
    cdef at.Tensor t = x.cdata, v
    cdef double number
    for part in index:
        interop.add_index(where, part)
    if isinstance(value, torch.Tensor):
        v = torch.unpack(value)
        with nogil:
            t.index_put_(where, v)
    else:
        number = value
        with nogil:
            t.index_put_(where, number)


def read_each(torch.Tensor x not None, torch.Tensor mask not None, torch.Tensor rows not None):
    """Every kind of index as C has it, on a tensor of sizes 5, 6, 7. The keys are what Python writes."""
    cdef at.Tensor t = x.cdata, m = mask.cdata, r = rows.cdata
    cdef at.Tensor a, b, c, d, e, f, g, h, i, j, k, m_, n, o, p, q
    cdef long two = 2
    cdef Py_ssize_t last = -1
    cdef uint8_t one = 1
    cdef cbool yes = True
    cdef size_t unsigned = 3
    with nogil:
        a = t.index(interop.indices(at.Slice(0, 3), 1, r))
        b = t.index(interop.indices(at.None_, at.Ellipsis, -1))
        c = t.index(interop.indices(m))
        d = t.index(interop.indices(at.Slice(1), at.Slice(at.None_, 3), at.Slice(1, at.None_, 2)))
        e = t.index(interop.indices(at.Slice(at.None_, at.None_, two), at.Slice(-3, -1), at.Slice(at.None_, 5, 2)))
        f = t.index(interop.indices(at.Slice(2, at.None_), at.Slice(at.None_, at.None_), at.Slice(1, 6, 3)))
        g = t.index(interop.indices(yes, last))
        h = t.index(interop.indices(interop.scalar(True), interop.scalar(1)))
        i = t.index(interop.indices(one, unsigned, two))
        j = t.index(interop.indices(at.None_, 0, at.None_, 1, at.None_, 2))
        k = t.index(interop.indices(r, at.Slice(), at.None_, r))
        m_ = t.index(interop.indices(<cbool>False))
        n = t.index(interop.indices(at.Ellipsis))
        o = t.index(interop.indices(at.Slice(), at.None_, at.Ellipsis, at.Slice(), two))
    p = t.index(interop.indices(None, ..., at.Slice(0, 2), rows))
    q = t.index(interop.indices(5000000000 - 4999999999, True if x is None else None, slice(None, 2)))
    return {
        "0:3, 1, rows": torch.wrap(a), "None, ..., -1": torch.wrap(b), "mask": torch.wrap(c),
        "1:, :3, 1::2": torch.wrap(d), "::2, -3:-1, :5:2": torch.wrap(e), "2:, :, 1:6:3": torch.wrap(f),
        "True, -1": torch.wrap(g), "True, 1": torch.wrap(h), "1, 3, 2": torch.wrap(i),
        "None, 0, None, 1, None, 2": torch.wrap(j), "rows, :, None, rows": torch.wrap(k), "False": torch.wrap(m_),
        "...": torch.wrap(n), ":, None, ..., :, 2": torch.wrap(o), "None, ..., 0:2, rows": torch.wrap(p),
        "1, None, :2": torch.wrap(q),
    }


def write_each(torch.Tensor x not None, torch.Tensor mask not None, torch.Tensor value not None):
    """In place, with each kind of value; sizes 4, 5."""
    cdef at.Tensor t = x.cdata, m = mask.cdata, v = value.cdata
    with nogil:
        t.index_put_(interop.indices(at.Slice(0, 2), at.Slice(1, at.None_)), v)
        t.index_put_(interop.indices(m), 0.5)
        t.index_put_(interop.indices(3, -1), 7)
        t.index_put_(interop.indices(at.Ellipsis, 0), at.Scalar(2.25))


def truth_written(torch.Tensor x not None):
    cdef at.Tensor t = x.cdata
    t.index_put_(interop.indices(1), True)


def undefined_index(torch.Tensor x not None):
    cdef at.Tensor nothing
    return torch.wrap(x.cdata.index(interop.indices(nothing)))


def slice_of_step_zero():
    cdef at.Slice _ = at.Slice(0, 3, 0)
    interop.indices(_)


def unsigned_index(torch.Tensor x not None, size_t i):
    return torch.wrap(x.cdata.index(interop.indices(i)))


# Accessors.

ctypedef fused element:
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    cbool
    float complex
    double complex


cdef _sum(at.Tensor t, element zero):
    cdef interop.const_accessor2[element] a = interop.const_accessor2[element](t, b"x")
    cdef element total = zero
    cdef int64_t i, j
    with nogil:
        for i in range(a.size(0)):
            for j in range(a.size(1)):
                total = total + a[i][j]
    return total


def total(torch.Tensor x not None, name):
    """The sum of all elements, the type given by name."""
    if name == "float32":
        return _sum[float](x.cdata, 0)
    if name == "float64":
        return _sum[double](x.cdata, 0)
    if name == "int8":
        return _sum[int8_t](x.cdata, 0)
    if name == "int16":
        return _sum[int16_t](x.cdata, 0)
    if name == "int32":
        return _sum[int32_t](x.cdata, 0)
    if name == "int64":
        return _sum[int64_t](x.cdata, 0)
    if name == "uint8":
        return _sum[uint8_t](x.cdata, 0)
    if name == "uint16":
        return _sum[uint16_t](x.cdata, 0)
    if name == "uint32":
        return _sum[uint32_t](x.cdata, 0)
    if name == "uint64":
        return _sum[uint64_t](x.cdata, 0)
    if name == "bool":
        return _sum[cbool](x.cdata, 0)
    if name == "complex64":
        return _sum[floatcomplex](x.cdata, 0)
    if name == "complex128":
        return _sum[doublecomplex](x.cdata, 0)
    raise NotImplementedError(name)


def scale1(torch.Tensor x not None, float factor):
    cdef interop.accessor1[float] a = interop.accessor1[float](x.cdata, b"x")
    cdef int64_t i
    with nogil:
        for i in range(a.size(0)):
            a[i] = factor * a[i]


def scale2(torch.Tensor x not None, float factor):
    cdef interop.accessor2[float] a = interop.accessor2[float](x.cdata, b"x")
    cdef int64_t i, j
    with nogil:
        for i in range(a.size(0)):
            for j in range(a.size(1)):
                a[i][j] *= factor


def scale3(torch.Tensor x not None, float factor):
    cdef interop.accessor3[float] a = interop.accessor3[float](x.cdata, b"x")
    cdef interop.row1[float] row
    cdef int64_t i, j, k
    with nogil:
        for i in range(a.size(0)):
            for j in range(a.size(1)):
                row = a[i][j]
                for k in range(a.size(2)):
                    row[k] = factor * row[k]


def scale4(torch.Tensor x not None, float factor):
    cdef interop.accessor4[float] a = interop.accessor4[float](x.cdata, b"x")
    cdef int64_t i, j, k, m
    with nogil:
        for i in range(a.size(0)):
            for j in range(a.size(1)):
                for k in range(a.size(2)):
                    for m in range(a.size(3)):
                        a[i][j][k][m] = factor * a[i][j][k][m]


def rows_of_temporaries(torch.Tensor x not None, torch.Tensor y not None):
    """Cython has one variable for the two accessors, so the first is gone when the second row is taken."""
    cdef interop.const_row1[float] r, q
    r = interop.const_accessor2[float](x.cdata)[1]
    q = interop.const_accessor2[float](y.cdata)[1]
    return r[0], r[1], q[0], q[1]


def accessor_of(torch.Tensor x):
    """Makes one and says what it says."""
    cdef at.Tensor t
    if x is not None:
        t = x.cdata
    cdef interop.accessor2[float] a = interop.accessor2[float](t, b"x")
    return (a.size(0), a.size(1)), (a.stride(0), a.stride(-1)), <size_t> a.data()


def const_accessor_of(torch.Tensor x):
    cdef at.Tensor t
    if x is not None:
        t = x.cdata
    cdef interop.const_accessor2[float] a = interop.const_accessor2[float](t, b"x")
    return (a.size(0), a.size(1)), (a.stride(0), a.stride(-1)), <size_t> a.data()


def unnamed_accessor(torch.Tensor x not None):
    cdef interop.accessor1[float] a = interop.accessor1[float](x.cdata)
    return a.size(0)


def accessor_size(torch.Tensor x not None, long dim):
    cdef interop.const_accessor2[float] a = interop.const_accessor2[float](x.cdata)
    return a.size(dim)


def outlives(torch.Tensor x not None):
    """An accessor of a tensor that has no other owner, of one that dies, and of one that is given other memory."""
    cdef interop.const_accessor1[float] a = interop.const_accessor1[float](at.neg(x.cdata)), b, c
    cdef at.Tensor t = at.mul(x.cdata, 2.0), others
    b = interop.const_accessor1[float](t)
    t = at.mul(x.cdata, 3.0)
    c = interop.const_accessor1[float](t)
    t.set_(at.zeros((5000,)))
    others = at.full(x.cdata.sizes(), 77.0, x.cdata.options())
    assert others.defined()
    return [a[i] for i in range(a.size(0))], [b[i] for i in range(b.size(0))], [c[i] for i in range(c.size(0))]


cdef extern from *:
    """
    #include <ATen/core/Tensor.h>
    static void interop_test_axpy(const at::Tensor& x, const at::Tensor& y, float factor) {
      auto a = x.accessor<float, 2>();
      auto b = y.accessor<float, 2>();
      for (int64_t i = 0; i < a.size(0); ++i) {
        for (int64_t j = 0; j < a.size(1); ++j) {
          b[i][j] = b[i][j] + factor * a[i][j];
        }
      }
    }
    static float interop_test_sum(const at::Tensor& x) {
      auto a = x.accessor<float, 2>();
      float total = 0;
      for (int64_t i = 0; i < a.size(0); ++i) {
        for (int64_t j = 0; j < a.size(1); ++j) {
          total = total + a[i][j];
        }
      }
      return total;
    }
    """
    void interop_test_axpy(const at.Tensor& x, const at.Tensor& y, float factor) nogil
    float interop_test_sum(const at.Tensor& x) nogil


def axpy(torch.Tensor x not None, torch.Tensor y not None, float factor):
    """y += factor * x, element by element."""
    cdef interop.const_accessor2[float] a = interop.const_accessor2[float](x.cdata, b"x")
    cdef interop.accessor2[float] b = interop.accessor2[float](y.cdata, b"y")
    cdef int64_t i, j
    with nogil:
        for i in range(a.size(0)):
            for j in range(a.size(1)):
                b[i][j] = b[i][j] + factor * a[i][j]


def axpy_cxx(torch.Tensor x not None, torch.Tensor y not None, float factor):
    """The same in C++ with at::TensorAccessor."""
    cdef at.Tensor a = x.cdata, b = y.cdata
    with nogil:
        interop_test_axpy(a, b, factor)


cdef float _sum_kernel(interop.const_accessor2[float]& a) noexcept nogil:
    cdef float total = 0
    cdef int64_t i, j
    for i in range(a.size(0)):
        for j in range(a.size(1)):
            total = total + a[i][j]
    return total


def sum_float(torch.Tensor x not None):
    """In a function of its own: a sum that lives across the end of `with nogil` is moved between registers."""
    cdef interop.const_accessor2[float] a = interop.const_accessor2[float](x.cdata, b"x")
    return _sum_kernel(a)


def sum_float_cxx(torch.Tensor x not None):
    return interop_test_sum(x.cdata)


# Settings.

def manual_seed(uint64_t seed):
    at.manual_seed(seed)


def settings():
    return {
        "deterministic": interop.are_deterministic_algorithms_enabled(),
        "warn only": interop.is_deterministic_algorithms_warn_only_enabled(),
        "precision": interop.get_float32_matmul_precision().decode(),
        "dtype": <int> interop.get_default_dtype(),
        "cudnn enabled": interop.get_cudnn_enabled(),
        "cudnn benchmark": interop.get_cudnn_benchmark(),
        "cudnn deterministic": interop.get_cudnn_deterministic(),
        "grad": at.GradMode.is_enabled(),
        "inference": torch.InferenceMode.is_enabled(),
    }


def has():
    return {
        "cuda": at.hasCUDA(), "hip": at.hasHIP(), "xpu": at.hasXPU(), "mps": at.hasMPS(), "mtia": at.hasMTIA(),
        "xla": at.hasXLA(), "hpu": at.hasHPU(), "mkl": at.hasMKL(), "mkldnn": at.hasMKLDNN(),
        "lapack": at.hasLAPACK(), "openmp": at.hasOpenMP(), "magma": at.hasMAGMA(), "gpus": at.getNumGPUs(),
    }


def use_deterministic(bint mode, bint warn_only=False):
    interop.use_deterministic_algorithms(mode, warn_only)


def alert():
    cdef torch.WarningScope warnings
    interop.alert_not_deterministic(b"handwritten")
    warnings.emit()


def set_precision(str word):
    interop.set_float32_matmul_precision(word.encode())


def set_cudnn(bint enabled, bint benchmark, bint deterministic):
    interop.set_cudnn_enabled(enabled)
    interop.set_cudnn_benchmark(benchmark)
    interop.set_cudnn_deterministic(deterministic)


def set_default_dtype(kind):
    interop.set_default_dtype(at.kDouble if kind == "double" else at.kFloat if kind == "float" else at.kLong)
    return torch.wrap(at.zeros((1,)))


def flush_denormal(bint mode):
    return interop.set_flush_denormal(mode)


# Generators.

def undefined_generator(what):
    cdef at.Generator g
    if what == "defined":
        return g.defined()
    if what == "current_seed":
        return g.current_seed()
    if what == "set_current_seed":
        g.set_current_seed(1)
    if what == "seed":
        return g.seed()
    if what == "clone":
        return g.clone().defined()
    if what == "device":
        return g.device().str()
    if what == "lock":
        g.lock()
    if what == "unlock":
        g.unlock()
    if what == "random":
        return g.random()
    if what == "random64":
        return g.random64()
    if what == "get_state":
        return torch.wrap(interop.get_state(g))
    if what == "set_state":
        interop.set_state(g, interop.get_state(interop.default_generator()))


def drawn(uint64_t seed, shape):
    """The draws of a generator of its own."""
    cdef at.Generator g = interop.make_cpu_generator(seed)
    cdef vector[int64_t] sizes = shape
    cdef at.Tensor state = interop.get_state(g), normal, uniform, coins, again
    with nogil:
        normal = at.randn(sizes, g)
        uniform = at.rand(sizes, g)
        coins = at.bernoulli(uniform, g)
        interop.set_state(g, state)
        again = at.randn(sizes, g)
    return torch.wrap(normal), torch.wrap(uniform), torch.wrap(coins), torch.wrap(again), g.current_seed()


def kernel_draws(uint64_t seed, long count):
    """A kernel of its own that locks, and draws."""
    cdef at.Generator g = interop.make_cpu_generator(seed)
    cdef vector[uint32_t] values
    cdef long _
    with nogil:
        g.lock()
        try:
            for _ in range(count):
                values.push_back(g.random())
        finally:
            g.unlock()
    return list(values)


def default_generator_facts():
    cdef at.Generator g = interop.default_generator(), same = interop.default_generator(), other = g.clone()
    return g.current_seed(), g == same, g == other, g != other, g.device().str().decode(), g.defined()


def seeded_default(uint64_t seed):
    cdef at.Generator g = interop.default_generator()
    g.set_current_seed(seed)


def reseeded():
    cdef at.Generator g = interop.make_cpu_generator(5)
    return g.seed(), g.current_seed()


def set_wrong_state(torch.Tensor state):
    cdef at.Generator g = interop.make_cpu_generator(5)
    cdef at.Tensor s
    if state is not None:
        s = state.cdata
    interop.set_state(g, s)


# Storages.

def undefined_storage(what):
    cdef at.Storage s
    if what == "bool":
        return True if s else False
    if what == "use_count":
        return s.use_count()
    if what == "nbytes":
        return s.nbytes()
    if what == "data":
        return <size_t> s.data()
    if what == "mutable_data":
        return <size_t> s.mutable_data()
    if what == "resizable":
        return s.resizable()
    if what == "device":
        return s.device().str()
    if what == "alias":
        return s.is_alias_of(s)


def storage_facts(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Storage s = x.cdata.storage(), of_y = y.cdata.storage()
    return {
        "defined": True if s else False,
        "nbytes": s.nbytes(),
        "data": <size_t> s.data(), "mutable": <size_t> s.mutable_data(),
        "resizable": s.resizable(), "device": s.device().str().decode(), "alias": s.is_alias_of(of_y),
        "at once": x.cdata.storage().nbytes(), "users": s.use_count(),
    }


# Scalars.

cdef _describe(at.Scalar s):
    kind = "bool" if s.isBoolean() else "complex" if s.isComplex() else "float" if s.isFloatingPoint() else "int"
    if kind == "complex":
        return kind, <int> s.type(), s.toComplexDouble()
    if kind == "float":
        return kind, <int> s.type(), s.toDouble()
    if kind == "bool":
        return kind, <int> s.type(), bool(s.toBool())
    return kind, <int> s.type(), s.toUInt64() if s.type() == at.ScalarType.UInt64 else s.toLong()


def scalar(value):
    return _describe(interop.scalar(value))


def scalars():
    cdef bint flag = True
    cdef cbool cflag = False
    cdef int i = -3
    cdef int64_t wide = -5
    cdef uint64_t u = 2 ** 64 - 1
    cdef float f = 0.5
    cdef double complex z = 1 + 2j
    cdef at.Scalar a, b, c, d, e, g, h, k, m, n
    with nogil:
        a = interop.scalar(True)
        b = interop.scalar(flag)
        c = interop.scalar(cflag)
        d = interop.scalar(i)
        e = interop.scalar(wide)
        g = interop.scalar(u)
        h = interop.scalar(f)
        k = interop.scalar(z)
        m = interop.scalar(1)
        n = interop.scalar(2.5)
    return [
        _describe(a), _describe(b), _describe(c), _describe(d), _describe(e), _describe(g), _describe(h), _describe(k),
        _describe(m), _describe(n),
    ]


def scalars_equal(a, b):
    cdef at.Scalar x = interop.scalar(a), y = interop.scalar(b)
    return interop.equal_scalars(x, y)


def scalar_as(value, what):
    cdef at.Scalar s = interop.scalar(value)
    if what == "long":
        return s.toLong()
    if what == "int":
        return s.toInt()
    if what == "double":
        return s.toDouble()
    if what == "bool":
        return bool(s.toBool())
    if what == "complex":
        return s.toComplexDouble()
    if what == "conj":
        return s.conj().toComplexDouble()
    if what == "negative":
        return _describe(-s)


def times_truth(torch.Tensor x not None):
    """A truth value keeps the type of a mask; the number 1 would not."""
    return torch.wrap(at.mul(x.cdata, interop.scalar(True)))


def number_on_the_left(torch.Tensor x not None, double d, long n):
    cdef at.Tensor t = x.cdata, a, b, c, e, f, g, h, i
    cdef int k = 3
    with nogil:
        a = d + t
        b = d - t
        c = d * t
        e = d / t
        f = n + t
        g = n - t
        h = 1 / t
        i = k * t - 2.0 * t
    return [torch.wrap(a), torch.wrap(b), torch.wrap(c), torch.wrap(e), torch.wrap(f), torch.wrap(g), torch.wrap(h),
            torch.wrap(i)]
