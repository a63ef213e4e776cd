"""The faults of planted.h for Python. Each function here does what its name says, and must not be imitated."""

cimport ATen as at
cimport torch
from libc.stdint cimport INT64_MAX, int64_t

cdef extern from "planted.h" namespace "planted" nogil:
    float c_read_past_end "planted::read_past_end"(const at.Tensor& tensor)
    float c_read_freed_tensor "planted::read_freed_tensor"() except +
    int64_t c_read_dangling_reference "planted::read_dangling_reference"()
    int64_t c_overflow "planted::overflow"(int64_t a, int64_t b)
    int64_t c_read_misaligned "planted::read_misaligned"(const at.Tensor& bytes)
    int64_t c_call_on_null "planted::call_on_null"(const at.Tensor* tensor)
    int64_t c_race_of_cpp_threads "planted::race_of_cpp_threads"() except +
    void c_race_in_tensor "planted::race_in_tensor"(const at.Tensor& tensor)
    int64_t c_race_in_loop "planted::race_in_loop"() except +
    void c_leak_memory "planted::leak_memory"() except +
    int64_t c_leak_cpp_tensor "planted::leak_cpp_tensor"() except +

cdef extern from "planted.h" namespace "planted":
    bint c_read_freed_object "planted::read_freed_object"() except +
    void c_leak_reference "planted::leak_reference"(object borrowed)


def read_past_end(torch.Tensor tensor not None):
    return c_read_past_end(tensor.cdata)


def read_freed_tensor():
    return c_read_freed_tensor()


def read_dangling_reference():
    return c_read_dangling_reference()


def read_freed_object():
    return c_read_freed_object()


def overflow(int64_t more):
    return c_overflow(INT64_MAX, more)


def read_misaligned(torch.Tensor bytes not None):
    return c_read_misaligned(bytes.cdata)


def call_on_null():
    return c_call_on_null(NULL)


def race_of_cpp_threads():
    return c_race_of_cpp_threads()


def race_in_tensor(torch.Tensor tensor not None):
    with nogil:
        c_race_in_tensor(tensor.cdata)


def race_in_loop():
    return c_race_in_loop()


def leak_memory():
    c_leak_memory()


def leak_cpp_tensor():
    return c_leak_cpp_tensor()


def leak_reference(obj):
    c_leak_reference(obj)
