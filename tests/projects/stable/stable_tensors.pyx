"""What a module for many releases of torch can do with tensors: tests/stable/checks.py calls it."""

cimport ATen as at
cimport torch
cimport torch.stable as st
from interop cimport get0, get1
from interop.scalar cimport scalar as scalar_of
from libc.stdint cimport int8_t, int16_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "interop/exceptions.h" namespace "interop::detail":
    void set_error_of_shim(const string& text, const string& function) except *


cdef extern from "interop/stable/shim.h" namespace "interop::stable":
    bint borrows


def is_borrowing():
    return borrows


# -- Python objects


def numel(st.Tensor x not None):
    return x.cdata.numel()


def numel_of_any(x):
    cdef st.Handle a = st.unpack(x)
    return a.numel()


def same(st.Tensor x not None):
    return st.wrap(x.cdata)


def kept(st.Tensor x not None):
    cdef st.Handle a = x.cdata, b = a, c
    c = b
    a = st.Handle()
    return st.wrap(c)


def undefined():
    cdef st.Handle a
    return a.defined(), st.wrap(a)


def numel_of_undefined():
    cdef st.Handle a
    return a.numel()


cdef class Cell:
    cdef st.Tensor weight
    cdef st.Handle state

    def __init__(self, st.Tensor weight not None):
        self.weight = weight

    cpdef forward(self, st.Tensor x):
        cdef st.Handle a = x.cdata, w = self.weight.cdata
        with nogil:
            self.state = st.relu(st.linear(a, w))
        return st.wrap(self.state)


cdef vector[st.Handle] in_vector
cdef optional[st.Handle] in_optional
cdef st.Handle* on_heap = NULL


def hold(st.Tensor x not None, how):
    """Keep a tensor in an object that is constructed of the field."""
    global on_heap
    if how == "vector":
        in_vector.emplace_back(x.cdata)
    elif how == "optional":
        in_optional.emplace(x.cdata)
    else:
        on_heap = new st.Handle(x.cdata)


def let_go():
    global on_heap
    in_vector.clear()
    in_optional.reset()
    del on_heap
    on_heap = NULL


# -- What a tensor says of itself


def metadata(st.Tensor x not None):
    cdef st.Handle a = x.cdata
    of_field = (x.cdata.dim(), x.cdata.numel(), x.cdata.sizes().vec(), x.cdata.is_contiguous(), x.cdata.nbytes())
    of_handle = (a.dim(), a.numel(), a.sizes().vec(), a.is_contiguous(), a.nbytes())
    assert of_field == of_handle
    return {
        "shape": a.sizes().vec(), "stride": a.strides().vec(), "ndim": a.dim(), "numel": a.numel(),
        "storage_offset": a.storage_offset(), "is_contiguous": a.is_contiguous(),
        "dtype": st.wrap_dtype(a.scalar_type()), "device": st.wrap_device(a.device()),
        "layout": st.wrap_layout(a.layout()), "requires_grad": a.requires_grad(),
        "itemsize": a.itemsize(), "nbytes": a.nbytes(), "is_meta": a.is_meta(),
        "is_floating_point": a.is_floating_point(), "is_complex": a.is_complex(), "is_same": a.is_same(a),
    }


def size(st.Tensor x not None, int64_t d):
    return x.cdata.size(d), x.cdata.stride(d)


def addresses(st.Tensor x not None):
    return <size_t>x.cdata.mutable_data_ptr(), <size_t>x.cdata.const_data_ptr()


def address_of_doubles(st.Tensor x not None):
    return <size_t>x.cdata.const_data_ptr[double]()


def item(st.Tensor x not None):
    return x.cdata.item[double]()


def number_in(st.Tensor x not None):
    return x.cdata.item().isIntegral(False), x.cdata.item().to[double]()


# -- ATen, by the same names as in a module for one release


def relu(torch.Tensor x not None):
    return torch.wrap(at.relu(x.cdata))


def without_the_gil(torch.Tensor x not None):
    cdef at.Tensor a = x.cdata, y
    with nogil:
        y = at.mul(a, at.add(a, a))
    return torch.wrap(y)


def sums(torch.Tensor x not None):
    return [torch.wrap(at.sum(x.cdata, (0, 1), True)), torch.wrap(x.cdata.sum(0)), torch.wrap(at.sum(x.cdata))]


def biggest(torch.Tensor x not None, int64_t dim):
    r = at.max(x.cdata, dim)
    return torch.wrap(get0(r)), torch.wrap(get1(r))


def histogram(st.Tensor x not None):
    """A tensor and a list of tensors: torch's C interface fails on results of two types."""
    r = at.histogramdd(x.cdata, [2] * x.cdata.size(1))
    return torch.wrap(get0(r)), [torch.wrap(edges) for edges in get1(r)]


def made_with_gradients(st.Tensor x not None):
    """Tensors that the options make require grad, by functions and a method."""
    cdef st.TensorOptions options = st.TensorOptions(st.kDouble).requires_grad(True)
    return [
        st.wrap(st.zeros((2, 3), options)), st.wrap(st.empty((2, 3), options)), st.wrap(st.rand((2, 3), options)),
        st.wrap(st.empty_like(x.cdata, options)), st.wrap(x.cdata.new_empty((2, 3), options)),
    ]


def converted_with_gradients(st.Tensor x not None):
    return st.wrap(x.cdata.to(st.TensorOptions(st.kDouble).requires_grad(True)))


def raise_as_from_torch(str text, str function):
    """Raise what a failed operator with this text of torch's raises."""
    set_error_of_shim(text.encode(), function.encode())


def zeros(shape, options):
    return torch.wrap(at.zeros(shape, options))


def linear(torch.Tensor x not None, torch.Tensor w not None, torch.Tensor b=None):
    if b is None:
        return torch.wrap(at.linear(x.cdata, w.cdata, None))
    return torch.wrap(at.linear(x.cdata, w.cdata, b.cdata))


def change(torch.Tensor x not None):
    x.cdata.add_(1)
    x.cdata.relu_()
    return torch.wrap(x.cdata)


def cat(tensors):
    return torch.wrap(at.cat(tensors, 0))


def split(torch.Tensor x not None):
    cdef vector[at.Tensor] parts = at.split(x.cdata, 2, 0)
    return [torch.wrap(part) for part in parts]


def index(torch.Tensor x not None, torch.Tensor i not None):
    cdef at.Tensor a = x.cdata, b = i.cdata
    return torch.wrap(a[0]), torch.wrap(a[b])


def of_fields(torch.Tensor x not None, torch.Tensor y not None):
    """Calls with several first parameters; one is a tensor in a Python object, which the call must find."""
    return [
        torch.wrap(at.pow(x.cdata, 2.0)), torch.wrap(at.where(at.gt(x.cdata, 0), x.cdata, y.cdata)),
        torch.wrap(at.remainder(x.cdata, y.cdata)), torch.wrap(x.cdata + y.cdata),
    ]


def result_type(torch.Tensor x not None):
    return torch.wrap_dtype(at.result_type(x.cdata, 2.5))


def undefined_requires_grad():
    cdef at.Tensor a
    return a.requires_grad()


cdef void clamp_of_nothing(int64_t begin, int64_t end, void* data) except * nogil:
    if end == 100000:  # the last part, which another thread has if there are two
        at.clamp((<at.Tensor*>data)[0], None, None)


def fail_in_torch_on_a_thread(torch.Tensor x not None):
    cdef at.Tensor a = x.cdata
    at.parallel_for(0, 100000, 10, clamp_of_nothing, &a)


def without_gradients(torch.Tensor x not None):
    cdef st.NoGradGuard _guard = st.NoGradGuard()
    return torch.wrap(x.cdata * x.cdata)


def arithmetic_of_sparse(torch.Tensor x not None):
    return torch.wrap(at.add(x.cdata, x.cdata))


def arithmetic(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Tensor a = x.cdata, b = y.cdata
    return [
        torch.wrap(a + b), torch.wrap(a - b), torch.wrap(a * b), torch.wrap(a + 2), torch.wrap(a - 1.5),
        torch.wrap(a * 2), torch.wrap(2 * a), torch.wrap(1 - a), torch.wrap(1.5 + a),
    ]


def with_number(torch.Tensor x not None, double number, name):
    cdef at.Tensor a = x.cdata
    if name == "add":
        return torch.wrap(at.add(a, number))
    if name == "sub":
        return torch.wrap(at.sub(a, number))
    if name == "mul":
        return torch.wrap(at.mul(a, number))
    if name == "div":
        return torch.wrap(at.div(a, number))
    return torch.wrap(at.gt(a, number))


def layout_and_memory_format(int layout, int memory_format):
    return st.wrap_layout(<at.Layout> layout), st.wrap_memory_format(<at.MemoryFormat> memory_format)


def contiguous(torch.Tensor x not None):
    """In the usual order, and if there are four dimensions also with the channels last."""
    cdef st.Handle usual = x.cdata.contiguous()
    if x.cdata.dim() != 4:
        return st.wrap(usual), None
    return st.wrap(usual), st.wrap(x.cdata.contiguous(at.MemoryFormat.ChannelsLast))


# -- Numbers


def converted(number, name):
    """An int or a float as the element type of this name, by way of a Scalar."""
    cdef at.Scalar scalar = scalar_of(number)
    if name == "uint8":
        return scalar.to[uint8_t]()
    if name == "int8":
        return <int> scalar.to[int8_t]()
    if name == "int16":
        return scalar.to[int16_t]()
    if name == "uint32":
        return scalar.to[uint32_t]()
    if name == "int32":
        return scalar.toInt()
    if name == "uint64":
        return scalar.toUInt64()
    if name == "int64":
        return scalar.toLong()
    if name == "bool":
        return scalar.toBool()
    return scalar.toFloat() if name == "float32" else scalar.toDouble()


# -- Loops and memory


cdef void double_part(int64_t begin, int64_t end, st.floating* data) noexcept nogil:
    cdef int64_t i
    for i in range(begin, end):
        data[i] *= 2


def double_(st.Tensor x not None):
    cdef st.Handle a = x.cdata
    part = st.dispatch_part(a.scalar_type(), b"double_", double_part[float], double_part[double])
    st.parallel_for(0, a.numel(), 1000, part, a.mutable_data_ptr())
    return x


cdef void row_sums_part(int64_t begin, int64_t end, st.constant_t how, st.any_t* of) noexcept nogil:
    """The sums of rows of three, or their largest elements."""
    cdef st.scalar_t* rows = <st.scalar_t*> of
    cdef int64_t i, j
    cdef st.acc_t total
    cdef st.scalar_t most
    for i in range(begin, end):
        total, most = 0, st.numeric_limits[st.scalar_t].lower_bound()
        for j in range(3):
            total += rows[3 * i + j]
            most = rows[3 * i + j] if rows[3 * i + j] > most else most
        if how == 1:
            total = most
        rows[3 * i] = <st.scalar_t> total


def row_sums_(st.Tensor x not None, int64_t how):
    cdef st.Handle a = x.cdata
    part = st.instantiate_part_with(
        how, 2, a.scalar_type(), b"row_sums_", row_sums_part, st.AT_ALL_TYPES, st.AT_REDUCED_FLOATING_TYPES)
    st.parallel_for(0, a.numel() // 3, 1000, part, a.mutable_data_ptr())
    return x


cdef void handling_part(int64_t begin, int64_t end, void* data) except * nogil:
    """Handles an error of torch and one of a function itself, so it has none."""
    with gil:
        try:
            with nogil:
                at.clamp((<at.Tensor*>data)[0], None, None)
        except (RuntimeError, ValueError):
            with nogil:
                at.neg((<at.Tensor*>data)[0])


def handle_in_a_loop(torch.Tensor x not None):
    cdef at.Tensor a = x.cdata
    at.parallel_for(0, 100000, 10, handling_part, &a)


cdef void failing_part(int64_t begin, int64_t end, void* data) noexcept nogil:
    with gil:
        raise KeyError("from a thread")


def fail_in_a_loop():
    st.parallel_for(0, 100000, 10, failing_part, NULL)


def total(st.Tensor x not None):
    cdef st.Handle a = x.cdata.contiguous()
    cdef double[::1] values = <double[:a.numel()]> a.mutable_data_ptr[double]()
    cdef double s = 0
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        s += values[i]
    return s


def total_of_constants(st.Tensor x not None):
    """The same through a memoryview that cannot write."""
    cdef st.Handle a = x.cdata.contiguous()
    cdef const double[::1] values = <const double[:a.numel()]> a.const_data_ptr[double]()
    cdef double s = 0
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        s += values[i]
    return s


cdef int deleted


cdef void delete(void* data, void* context) noexcept nogil:
    (<int*>context)[0] += 1
    free(data)


def counted_up(int64_t n):
    cdef double* data = <double*>malloc(max(n, 1) * sizeof(double))
    cdef int64_t i
    for i in range(n):
        data[i] = i
    return st.wrap(st.from_blob(data, (n,), st.kDouble, delete, &deleted))


def blob_of_nothing(sizes):
    """A tensor over a null pointer, whose deleter is called all the same."""
    cdef vector[int64_t] listed = sizes
    return st.wrap(st.from_blob(NULL, listed, st.kDouble, delete, &deleted))


def blob_of_sizes(sizes):
    cdef double data[1]
    cdef vector[int64_t] listed = sizes
    return st.wrap(st.from_blob(data, listed, st.kDouble))


def deletions():
    return deleted


def on_its_device(st.Tensor x not None):
    cdef st.DeviceGuard _guard = st.DeviceGuard(x.cdata.device())
    return <size_t>st.current_native_stream(x.cdata.device())


def squares(n):
    for i in range(n):
        yield i * i
