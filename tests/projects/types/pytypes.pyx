# The Python-side types of torch as C types: what a user writes who takes and returns dtypes, devices and sizes.
cimport ATen as at
cimport torch
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from interop.exceptions cimport translate_exception
from libcpp.vector cimport vector

import torch

cdef extern from "interop/python_types.h" namespace "interop":
    cbool is_dtype(object obj) noexcept
    cbool is_device(object obj) noexcept
    cbool is_layout(object obj) noexcept
    cbool is_memory_format(object obj) noexcept
    cbool is_size(object obj) noexcept
    cbool is_generator(object obj) noexcept
    cbool is_stream(object obj) noexcept
    at.ScalarType dtype_of(object obj) noexcept
    at.Device device_of(object obj) noexcept
    at.Layout layout_of(object obj) noexcept
    at.MemoryFormat memory_format_of(object obj) noexcept
    at.Generator generator_of(object obj) noexcept

    # It has no default, so it cannot be a variable here.
    cppclass CStream "c10::Stream":
        pass

    CStream stream_of(object obj) noexcept
    object wrap_cstream "interop::wrap_stream"(const CStream& stream) except +translate_exception


cdef class Spec:
    """Every one of them as a typed attribute, checked on assignment."""

    cdef public torch.dtype dtype
    cdef public torch.device device
    cdef public torch.layout layout
    cdef public torch.memory_format memory_format
    cdef public torch.Size size
    cdef public torch.Generator generator
    cdef public torch.Stream stream

    def empty(self):
        """A tensor as the attributes say."""
        cdef vector[int64_t] shape = self.size
        cdef at.TensorOptions options = at.TensorOptions(self.dtype.scalar_type).device(self.device.device)
        return torch.wrap(at.empty(shape, options.layout(self.layout.layout), self.memory_format.memory_format))


# Out of the object and back.

def dtype(torch.dtype x not None):
    cdef at.ScalarType value
    with nogil:
        value = x.scalar_type
    return torch.wrap_dtype(value)


def device(torch.device x not None):
    cdef at.Device value
    with nogil:
        value = x.device
    return torch.wrap_device(value)


def layout(torch.layout x not None):
    cdef at.Layout value
    with nogil:
        value = x.layout
    return torch.wrap_layout(value)


def memory_format(torch.memory_format x not None):
    cdef at.MemoryFormat value
    with nogil:
        value = x.memory_format
    return torch.wrap_memory_format(value)


def size(torch.Size x not None):
    cdef vector[int64_t] value = x
    return torch.wrap_size(value)


def generator(torch.Generator x not None):
    cdef at.Generator value = x.cdata
    return torch.wrap_generator(value)


def stream(torch.Stream x not None):
    cdef int64_t stream_id, device_type, device_index
    with nogil:
        stream_id, device_type, device_index = x.stream_id, x.device_type, x.device_index
    return torch.wrap_stream(stream_id, at.Device(<at.DeviceType>device_type, <at.DeviceIndex>device_index))


# The types without `not None`, as most people write them.

def dtype_or_none(torch.dtype x):
    return x is None


def read_dtype(torch.dtype x):
    cdef at.ScalarType value
    with nogil:
        value = x.scalar_type
    return <int>value


def read_device(torch.device x):
    return x.device.is_cpu()


def read_layout(torch.layout x):
    return x.layout == at.kStrided


def read_memory_format(torch.memory_format x):
    return x.memory_format == at.MemoryFormat.ChannelsLast


def read_generator(torch.Generator x):
    return x.cdata.defined()


def read_stream(torch.Stream x):
    return x.stream_id


# The functions of the header, for objects of any type.

def kinds(obj):
    """The names of the types that the object really has."""
    return [
        name
        for name, passed in (
            ("dtype", is_dtype(obj)),
            ("device", is_device(obj)),
            ("layout", is_layout(obj)),
            ("memory_format", is_memory_format(obj)),
            ("Size", is_size(obj)),
            ("Generator", is_generator(obj)),
            ("Stream", is_stream(obj)),
        )
        if passed
    ]


def through_header(obj):
    """Out of the object and back, by the type that the object has."""
    if is_dtype(obj):
        return torch.wrap_dtype(dtype_of(obj))
    if is_device(obj):
        return torch.wrap_device(device_of(obj))
    if is_layout(obj):
        return torch.wrap_layout(layout_of(obj))
    if is_memory_format(obj):
        return torch.wrap_memory_format(memory_format_of(obj))
    if is_generator(obj):
        return torch.wrap_generator(generator_of(obj))
    if is_stream(obj):
        return wrap_cstream(stream_of(obj))
    raise TypeError(f"nothing is known of {obj!r}")


cdef class HeldGenerator:
    """Owns the C++ generator and no Python object."""

    cdef at.Generator value

    def __init__(self, torch.Generator x not None):
        self.value = x.cdata

    def get(self):
        return torch.wrap_generator(self.value)

    def random(self, torch.Tensor x not None):
        """Fills x with the generator's next numbers."""
        x.cdata.uniform_(0.0, 1.0, self.value)
        return x


# Constants and values of C++.

def constants():
    return (
        torch.wrap_dtype(at.kFloat),
        torch.wrap_dtype(at.ScalarType.BFloat16),
        torch.wrap_layout(at.kStrided),
        torch.wrap_layout(at.Layout.SparseCsr),
        torch.wrap_memory_format(at.MemoryFormat.ChannelsLast),
        torch.wrap_device(at.Device(at.kCPU)),
        torch.wrap_device(at.Device(at.kCUDA, 3)),
    )


def of_tensor(torch.Tensor x not None):
    return (
        torch.wrap_dtype(x.cdata.scalar_type()),
        torch.wrap_device(x.cdata.device()),
        torch.wrap_layout(x.cdata.layout()),
        torch.wrap_size(x.cdata.sizes()),
    )


def same_device(torch.device x not None, torch.device y not None):
    cdef at.Device a = x.device
    return a == y.device, x.device == a, x.device == y.device, x.device != y.device


def is_cpu(torch.device x not None):
    return x.device == at.Device(at.kCPU)


def undefined_dtype():
    return torch.wrap_dtype(at.ScalarType.Undefined)


def number_of_dtype(int number):
    return torch.wrap_dtype(<at.ScalarType>number)


def number_of_layout(int number):
    return torch.wrap_layout(<at.Layout>number)


def number_of_memory_format(int number):
    return torch.wrap_memory_format(<at.MemoryFormat>number)


def convert_dtype(x):
    """What Cython makes of any object that is assigned to the enum."""
    cdef at.ScalarType value = x
    return <int>value


def cast_dtype(torch.dtype x not None):
    return <int>(<at.ScalarType>x)


def argument_dtype(at.ScalarType x):
    return <int>x


def checked_dtype(x):
    """The way to go for an object of unknown type."""
    return <int>(<torch.dtype?>x).scalar_type


def undefined_generator():
    cdef at.Generator nothing
    return torch.wrap_generator(nothing)


def repeat(str name, x, long count):
    """Makes the same object many times."""
    cdef long _
    cdef at.Device where
    cdef vector[int64_t] shape
    for _ in range(count):
        if name == "dtype":
            y = torch.wrap_dtype((<torch.dtype>x).scalar_type)
        elif name == "layout":
            y = torch.wrap_layout((<torch.layout>x).layout)
        elif name == "memory_format":
            y = torch.wrap_memory_format((<torch.memory_format>x).memory_format)
        elif name == "device":
            y = torch.wrap_device((<torch.device>x).device)
        elif name == "Size":
            shape = x
            y = torch.wrap_size(shape)
        elif name == "Generator":
            y = torch.wrap_generator((<torch.Generator>x).cdata)
        elif name == "Stream":
            where = at.Device(<at.DeviceType>(<torch.Stream>x).device_type)
            y = torch.wrap_stream((<torch.Stream>x).stream_id, where)
        else:
            raise ValueError(name)


# Sizes are tuples.

def size_item(torch.Size x not None, Py_ssize_t index):
    return x[index], len(x), list(x), x[1:]


def size_product(torch.Size x not None):
    cdef int64_t product = 1, n
    for n in x:
        product *= n
    return product


def size_of(values):
    return torch.wrap_size(values)


# Names of the cimported module are Python's types too.

def names(x):
    """Names of `import torch`, some of which are C types here as well."""
    return (
        torch.device("cpu", 0),
        torch.device(type="meta"),
        torch.Size([2, 3]),
        torch.Generator(device="cpu").device,
        torch.dtype,
        torch.float32,
        isinstance(x, torch.dtype),
    )
