# at.TensorIterator: elementwise operations and reductions, with loops of every kind.
cimport ATen as at
cimport torch
from interop cimport Loop, all_types, dispatch, integral
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

ctypedef fused element:
    float
    double
    at.Half
    at.BFloat16
    integral
    float complex
    double complex


class Told(Exception):
    pass


cdef void _combine(char** data, const int64_t* strides, int64_t n, element* _) noexcept nogil:
    """2 a + b."""
    cdef int64_t _i
    for _i in range(n):
        if element is at.Half or element is at.BFloat16:
            (<element*> data[0])[0] = <element> (2 * <float> (<element*> data[1])[0] + <float> (<element*> data[2])[0])
        else:
            (<element*> data[0])[0] = 2 * (<element*> data[1])[0] + (<element*> data[2])[0]
        data[0] += strides[0]
        data[1] += strides[1]
        data[2] += strides[2]


cdef void _less(char** data, const int64_t* strides, int64_t n, all_types* _) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        (<cbool*> (data[0] + i * strides[0]))[0] = (
            (<all_types*> (data[1] + i * strides[1]))[0] < (<all_types*> (data[2] + i * strides[2]))[0])


def binary(kind, torch.Tensor out, torch.Tensor x not None, torch.Tensor y not None, int64_t grain=32768):
    """2 x + y, or x < y, as `kind` treats dtypes."""
    cdef at.Tensor result
    cdef at.TensorIterator it
    if out is not None:
        result = out.cdata
    if kind == "comparison_op":
        it = at.TensorIterator.comparison_op(result, x.cdata, y.cdata)
        with nogil:
            it.for_each(
                dispatch(
                    it.common_dtype(), b"less", _less[float], _less[double], _less[int8_t], _less[int16_t],
                    _less[int32_t], _less[int64_t], _less[uint8_t]),
                NULL)
        return torch.wrap(it.output(0))
    if kind == "binary_op":
        it = at.TensorIterator.binary_op(result, x.cdata, y.cdata)
    else:
        it = at.TensorIterator.binary_float_op(result, x.cdata, y.cdata)
    _run(it, grain)
    return torch.wrap(it.output(0))


cdef int _run(at.TensorIterator& it, int64_t grain) except -1 nogil:
    it.for_each(
        dispatch(
            it.common_dtype(), b"combine", _combine[float], _combine[double], _combine[at.Half],
            _combine[at.BFloat16], _combine[int8_t], _combine[int16_t], _combine[int32_t], _combine[int64_t],
            _combine[uint8_t], _combine[floatcomplex], _combine[doublecomplex]),
        NULL, grain)
    return 0


def binary_of_temporaries(torch.Tensor x not None, torch.Tensor y not None):
    """No other owner than the iterator has the inputs and the output."""
    cdef at.TensorIteratorConfig config
    config.promote_inputs_to_common_dtype(True).cast_common_dtype_to_outputs(True)
    config.add_output(at.empty(x.cdata.sizes(), x.cdata.options())).add_input(at.neg(x.cdata))
    config.add_input(at.neg(y.cdata))
    cdef at.TensorIterator it = config.build(), same
    config = at.TensorIteratorConfig()
    cdef at.Tensor others = at.full(x.cdata.sizes(), 77.0, x.cdata.options())
    _run(it, 1)
    same = it
    it = at.TensorIterator()
    assert others.defined()
    return torch.wrap(same.output(0))


cdef void _twice(char** data, const int64_t* strides, int64_t n, void* context) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        (<float*> (data[0] + i * strides[0]))[0] = 2 * (<float*> (data[1] + i * strides[1]))[0]


cdef void _twice2d(char** data, const int64_t* strides, int64_t n, int64_t m, void* context) noexcept nogil:
    cdef int64_t i, j
    for j in range(m):
        for i in range(n):
            (<float*> (data[0] + j * strides[2] + i * strides[0]))[0] = (
                2 * (<float*> (data[1] + j * strides[3] + i * strides[1]))[0])


def twice(torch.Tensor x not None, torch.Tensor out=None, bint two_dimensional=False, int64_t grain=32768):
    """Of floats."""
    cdef at.Tensor result
    if out is not None:
        result = out.cdata
    cdef at.TensorIterator it = at.TensorIterator.unary_op(result, x.cdata)
    if two_dimensional:
        it.for_each(_twice2d, NULL, grain)
    else:
        it.for_each(_twice, NULL, grain)
    return torch.wrap(it.output(0))


cdef void _fill(char** data, const int64_t* strides, int64_t n, void* context) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        (<float*> (data[0] + i * strides[0]))[0] = (<float*> context)[0]


def fill(torch.Tensor x not None, float value):
    cdef at.TensorIterator it = at.TensorIterator.nullary_op(x.cdata)
    it.for_each(_fill, &value)


def made(shape):
    """Made by the iterator, of a shape and dtype that are declared."""
    cdef at.TensorIteratorConfig config
    cdef float value = 3
    config.declare_static_dtype(at.kFloat).declare_static_shape(shape).add_output(at.Tensor())
    cdef at.TensorIterator it = config.build()
    it.for_each(_fill, &value)
    return torch.wrap(it.output(0))


def build(outputs, inputs, options, shape=None):
    """An iterator of these tensors and options: what it says of itself."""
    cdef at.TensorIteratorConfig config
    for tensor in outputs:
        config.add_output(torch.unpack(tensor) if tensor is not None else at.Tensor())
    for tensor in inputs:
        config.add_input(torch.unpack(tensor))
    for option, value in options.items():
        if option == "check_all_same_dtype":
            config.check_all_same_dtype(value)
        elif option == "promote_inputs_to_common_dtype":
            config.promote_inputs_to_common_dtype(value)
        elif option == "promote_integer_inputs_to_float":
            config.promote_integer_inputs_to_float(value)
        elif option == "cast_common_dtype_to_outputs":
            config.cast_common_dtype_to_outputs(value)
        elif option == "enforce_safe_casting_to_output":
            config.enforce_safe_casting_to_output(value)
        elif option == "enforce_linear_iteration":
            config.enforce_linear_iteration(value)
        elif option == "resize_outputs":
            config.resize_outputs(value)
        elif option == "is_reduction":
            config.is_reduction(value)
        elif option == "dtype":
            config.declare_static_dtype((<torch.dtype?> value).scalar_type)
        else:
            raise KeyError(option)
    if shape is not None:
        config.declare_static_shape(shape)
    cdef at.TensorIterator it = config.build()
    return {
        "ndim": it.ndim(), "ntensors": it.ntensors(), "noutputs": it.noutputs(), "ninputs": it.ninputs(),
        "numel": it.numel(), "num_output_elements": it.num_output_elements(),
        "num_reduce_dims": it.num_reduce_dims(), "is_contiguous": it.is_contiguous(),
        "shape": torch.wrap_size(it.shape()),
        "strides": [tuple(torch.wrap_size(it.strides(i))) for i in range(it.ntensors())],
        "dtypes": [torch.wrap_dtype(it.dtype(i)) for i in range(it.ntensors())],
        "outputs": [torch.wrap(it.output(i)) for i in range(it.noutputs())],
        "inputs": [torch.wrap(it.input(i)) for i in range(it.ninputs())],
        "common_dtype": torch.wrap_dtype(it.common_dtype()) if options.get("promote_inputs_to_common_dtype") else None,
    }


def wrong(what, torch.Tensor x not None):
    """Misuse."""
    cdef at.TensorIterator it
    cdef at.TensorIteratorConfig config
    cdef Loop nothing = NULL
    if what == "unbuilt":
        return it.numel()
    if what == "nothing":
        config.build()
    if what == "order":
        config.add_input(x.cdata).add_output(x.cdata)
    it = at.TensorIterator.unary_op(at.Tensor(), x.cdata)
    if what == "NULL":
        it.for_each(nothing, NULL)
    if what == "grain":
        it.for_each(_twice, NULL, -1)
    if what == "output":
        it.output(1)
    if what == "input":
        it.input(-1)
    if what == "dtype":
        it.dtype(2)
    if what == "strides":
        it.strides(2)
    if what == "common_dtype":
        it = at.TensorIterator.nullary_op(x.cdata)
        it.common_dtype()
    if what == "outputs of parallel_reduce":
        it = at.TensorIterator.binary_op(at.Tensor(), x.cdata, x.cdata)
        it.parallel_reduce(_twice, NULL)
    if what == "dtypes of parallel_reduce":
        it = at.TensorIterator.reduce_op(at.zeros((1,), at.kDouble), x.cdata)
        it.parallel_reduce(_twice, NULL)
    if what == "undefined output of reduce_op":
        at.TensorIterator.reduce_op(at.Tensor(), x.cdata)
    if what == "undefined input":
        at.TensorIterator.unary_op(at.Tensor(), at.Tensor())


def run_twice(torch.Tensor x not None, torch.Tensor y not None, torch.Tensor out not None):
    """The same iterator run two times."""
    cdef at.TensorIterator it = at.TensorIterator.binary_op(out.cdata, x.cdata, y.cdata)
    _run(it, 1)
    _run(it, 1)
    return out


# Errors.

cdef void _raise_at(char** data, const int64_t* strides, int64_t n, void* context) except * nogil:
    cdef int64_t i
    for i in range(n):
        if (<float*> (data[1] + i * strides[1]))[0] < 0:
            with gil:
                raise Told("negative")


cdef void _raise_noexcept(char** data, const int64_t* strides, int64_t n, void* context) noexcept nogil:
    _raise_at(data, strides, n, context)


cdef void _raise_2d(char** data, const int64_t* strides, int64_t n, int64_t m, void* context) except * nogil:
    with gil:
        raise Told("2d")


def raising(torch.Tensor x not None, kind):
    """Raises if an element is negative."""
    cdef at.TensorIterator it = at.TensorIterator.unary_op(at.Tensor(), x.cdata)
    with nogil:
        if kind == 0:
            it.for_each(_raise_at, NULL, 1)
        elif kind == 1:
            it.for_each(_raise_noexcept, NULL, 1)
        else:
            it.for_each(_raise_2d, NULL, 1)


# Reductions.

cdef void _add(char** data, const int64_t* strides, int64_t n, element* _) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if element is at.Half or element is at.BFloat16:
            (<element*> (data[0] + i * strides[0]))[0] = <element> (
                <float> (<element*> (data[0] + i * strides[0]))[0] + <float> (<element*> (data[1] + i * strides[1]))[0])
        else:
            (<element*> (data[0] + i * strides[0]))[0] += (<element*> (data[1] + i * strides[1]))[0]


def total(torch.Tensor x not None, dims, method="parallel_reduce"):
    """The sum over `dims`, which stay with size 1; with one of the iterator's three ways."""
    cdef vector[int64_t] sizes = x.cdata.sizes().vec()
    for d in dims:
        sizes[d] = 1
    cdef at.Tensor result = at.zeros(sizes, x.cdata.options())
    cdef at.TensorIterator it = at.TensorIterator.reduce_op(result, x.cdata)
    cdef Loop loop = dispatch(
        it.dtype(0), b"total", _add[float], _add[double], _add[int64_t], _add[floatcomplex], _add[at.BFloat16])
    if method == "parallel_reduce":
        with nogil:
            it.parallel_reduce(loop, NULL)
    elif method == "for_each":
        it.for_each(loop, NULL, 1)
    else:
        it.foreach_reduced_elt(_total_of_part, <void*> loop)
    return torch.wrap(result)


cdef void _total_of_part(at.TensorIterator& part, void* context) except * nogil:
    part.for_each(<Loop> context, NULL)


cdef void _raise_in_part(at.TensorIterator& part, void* context) except * nogil:
    with gil:
        raise Told(part.numel())


def raise_in_part(torch.Tensor x not None):
    cdef at.TensorIterator it = at.TensorIterator.reduce_op(at.zeros((1, x.cdata.size(1))), x.cdata)
    it.foreach_reduced_elt(_raise_in_part, NULL)


cdef void _positive(char** data, const int64_t* strides, int64_t n, void* context) except * nogil:
    cdef int64_t i
    for i in range(n):
        if (<float*> (data[1] + i * strides[1]))[0] < 0:
            with gil:
                raise Told("negative")
        (<float*> (data[0] + i * strides[0]))[0] += (<float*> (data[1] + i * strides[1]))[0]


def total_of_positive(torch.Tensor x not None):
    cdef at.Tensor result = at.zeros((1,) * 1)
    cdef at.TensorIterator it = at.TensorIterator.reduce_op(result, x.cdata)
    it.parallel_reduce(_positive, NULL)
    return torch.wrap(result)
