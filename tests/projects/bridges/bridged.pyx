# distutils: language = c++
# cython: boundscheck=True
"""Uses the converters from Cython, and takes typed memoryviews of every element type that Cython has."""

cimport ATen as at
cimport torch
from interop.bridges cimport (
    OnReadonly, as_memoryview, from_buffer, from_cuda_array_interface, from_numpy, to_cuda_array_interface, to_numpy,
)

ctypedef fused Element:
    signed char
    short
    int
    long
    unsigned char
    unsigned short
    unsigned int
    unsigned long
    float
    double
    float complex
    double complex


def numpy_and_back(array):
    cdef at.Tensor tensor = from_numpy(array)
    return to_numpy(at.mul(tensor, tensor))


def shared(array):
    return torch.wrap(from_numpy(array, OnReadonly.share)), torch.wrap(from_numpy(array, OnReadonly.copy))


def forced(torch.Tensor tensor not None):
    return to_numpy(tensor.cdata, True), to_numpy(tensor.cdata, False, True)


def viewed(torch.Tensor tensor not None):
    return as_memoryview(tensor.cdata), as_memoryview(tensor.cdata, True)


def buffered(obj):
    return torch.wrap(from_buffer(obj)), torch.wrap(from_buffer(obj, at.kByte, (2, 2), 1, OnReadonly.share))


def of_cuda_array(obj):
    return torch.wrap(from_cuda_array_interface(obj))


def as_cuda_array(torch.Tensor tensor not None):
    return to_cuda_array_interface(tensor.cdata)


def shift(Element[:, :] values, Element by):
    """Adds to each element, in place."""
    cdef Py_ssize_t i, j
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = <Element> (values[i, j] + by)


def total(const Element[:] values):
    """Reads only."""
    cdef Py_ssize_t i
    cdef Element result = 0
    for i in range(values.shape[0]):
        result = <Element> (result + values[i])
    return result


def contiguous(float[:, ::1] values):
    return values.shape[0], values.shape[1]


cdef class Keeper:
    """Keeps a view of a tensor's memory."""
    cdef float[:] values

    def __init__(self, values):
        self.values = values

    def read(self):
        return [self.values[i] for i in range(self.values.shape[0])]


cdef extern from *:
    """
    #include "interop/bridges/format.h"
    #include "interop/python_types.h"
    static PyObject* bridged_parsed(const char* text) {
      const interop::bridges::Format format = interop::bridges::read_format(text);
      PyObject* sizes = PyList_New(0);
      for (int64_t size : format.sizes) {
        PyObject* number = PyLong_FromLongLong(size);
        PyList_Append(sizes, number);
        Py_DECREF(number);
      }
      PyObject* dtype = format.dtype ? interop::wrap_dtype(format.dtype->type) : Py_NewRef(Py_None);
      return Py_BuildValue("(NNLzO)", dtype, sizes, static_cast<long long>(format.itemsize), format.reason,
                           format.pointers ? Py_True : Py_False);
    }
    """
    object bridged_parsed(const char* text)


def parsed(bytes text):
    """What a format says: dtype, sizes of a subarray, item size, the reason if there is no dtype, if it is pointers."""
    return bridged_parsed(text)


def read_by_a_writer(float[:] values):
    """Reads only, and asks for memory to write to, as code that was not written for tensors does."""
    cdef Py_ssize_t i
    cdef float result = 0
    for i in range(values.shape[0]):
        result += values[i]
    return result


cdef class Liar:
    """Exports 64 bytes, and says of them what it is told.

    That is `address`, `length`, `itemsize`, `ndim`, `format`, `shape` and `strides`; None is a null pointer.
    """
    cdef dict told
    cdef bytes format
    cdef char memory[64]
    cdef Py_ssize_t shape[8]
    cdef Py_ssize_t strides[8]

    def __cinit__(self, **told):
        self.told = {"length": 64, "itemsize": 1, "ndim": 1, "format": b"B", "shape": None, "strides": None} | told
        self.format = self.told["format"]
        for i, size in enumerate(self.told["shape"] or ()):
            self.shape[i] = size
        for i, step in enumerate(self.told["strides"] or ()):
            self.strides[i] = step

    def __getbuffer__(self, Py_buffer* view, int flags):
        view.buf = <void*> <size_t> self.told["address"] if "address" in self.told else self.memory
        view.obj = self
        view.len = self.told["length"]
        view.itemsize = self.told["itemsize"]
        view.readonly = False
        view.ndim = self.told["ndim"]
        view.format = self.format
        view.shape = &self.shape[0]
        if self.told["shape"] is None:
            view.shape = NULL
        view.strides = &self.strides[0]
        if self.told["strides"] is None:
            view.strides = NULL
        view.suboffsets = NULL
        view.internal = NULL
