# distutils: language = c++
"""DLPack from Cython: the functions, the structs, and a type of objects that has nothing but the C exchange API."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

cimport torch
from ATen.dlpack cimport (
    DLPACK_FLAG_BITMASK_READ_ONLY,
    DLPACK_MAJOR_VERSION,
    DLDeviceType,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
    DLTensor,
    kDLCPU,
    kDLCUDA,
)
from interop.bridges cimport OnReadonly
from interop.dlpack cimport exchange_api, from_dlpack, from_managed, to_dlpack, to_dltensor, to_managed


def imported(obj):
    return torch.wrap(from_dlpack(obj))


def shared(obj):
    return torch.wrap(from_dlpack(obj, OnReadonly.share))


def exported(torch.Tensor tensor not None):
    return to_dlpack(tensor.cdata), to_dlpack(tensor.cdata, True)


cdef tuple told(const DLTensor& view):
    return (
        <size_t> view.data + view.byte_offset,
        (view.device.device_type, view.device.device_id),
        (view.dtype.code, view.dtype.bits, view.dtype.lanes),
        [view.shape[d] for d in range(view.ndim)],
        [view.strides[d] for d in range(view.ndim)],
    )


def described(torch.Tensor tensor not None, bint readonly=False):
    cdef DLTensor view
    with nogil:
        view = to_dltensor(tensor.cdata, readonly)
    return told(view)


def total(torch.Tensor tensor not None):
    """Sums a contiguous float64 tensor that only its description is known of."""
    cdef DLTensor view
    cdef double result = 0
    cdef int64_t i, n = 1
    with nogil:
        view = to_dltensor(tensor.cdata, True)
        for i in range(view.ndim):
            n *= view.shape[i]
        for i in range(n):
            result += (<double*> view.data)[i]
    return result


def round_trip(torch.Tensor tensor not None, bint readonly=False):
    """By a managed tensor without a capsule; also what it says of itself."""
    cdef DLManagedTensorVersioned* managed = to_managed(tensor.cdata, readonly)
    flags = managed.flags
    return torch.wrap(from_managed(managed, OnReadonly.share)), flags


def end(torch.Tensor tensor not None):
    """Makes a managed tensor that nobody takes, and ends it without the GIL."""
    cdef DLManagedTensorVersioned* managed = to_managed(tensor.cdata)
    with nogil:
        managed.deleter(managed)


# A managed tensor whose deleter counts, and which can say anything of itself.

ctypedef struct Counted:
    DLManagedTensorVersioned managed
    int64_t shape
    int64_t stride
    double value

cdef int ended = 0


cdef void end_counted(DLManagedTensorVersioned* self) noexcept with gil:
    global ended
    ended += 1
    free(self.manager_ctx)


cdef DLManagedTensorVersioned* counted(double value, int major=DLPACK_MAJOR_VERSION):
    cdef Counted* made = <Counted*> malloc(sizeof(Counted))
    made.shape = made.stride = 1
    made.value = value
    made.managed.version.major = major
    made.managed.version.minor = 0
    made.managed.flags = 0
    made.managed.manager_ctx = made
    made.managed.deleter = end_counted
    made.managed.dl_tensor.data = &made.value
    made.managed.dl_tensor.device.device_type = kDLCPU
    made.managed.dl_tensor.device.device_id = 0
    made.managed.dl_tensor.ndim = 1
    made.managed.dl_tensor.dtype.code = 2
    made.managed.dl_tensor.dtype.bits = 64
    made.managed.dl_tensor.dtype.lanes = 1
    made.managed.dl_tensor.shape = &made.shape
    made.managed.dl_tensor.strides = &made.stride
    made.managed.dl_tensor.byte_offset = 0
    return &made.managed


def ends():
    """How often the deleter was called."""
    return ended


def take(double value, int major=DLPACK_MAJOR_VERSION, bint readonly=False):
    cdef DLManagedTensorVersioned* managed = counted(value, major)
    if readonly:
        managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY
    return torch.wrap(from_managed(managed))


# Objects that only have the C exchange API. What it does depends on their `how`.

cdef class Exchanged:
    cdef public str how
    cdef public double value

    def __init__(self, value, how="well"):
        self.value = value
        self.how = how


cdef int export_object(void* obj, DLManagedTensorVersioned** out) except -1:
    cdef Exchanged given = <Exchanged> <PyObject*> obj
    out[0] = NULL
    if given.how == "raises":
        raise BufferError("it does not want to")
    if given.how == "fails":
        return -1
    if given.how == "gives nothing":
        return 0
    out[0] = counted(given.value, 2 if given.how == "is new" else 1)
    if given.how == "read-only":
        out[0].flags = DLPACK_FLAG_BITMASK_READ_ONLY
    if given.how == "on CUDA":
        out[0].dl_tensor.device.device_type = kDLCUDA
        out[0].dl_tensor.device.device_id = 3
    if given.how == "lanes":
        out[0].dl_tensor.dtype.lanes = 2
    return 0


cdef size_t works_on = 0


def set_stream(size_t handle):
    """The stream on which those objects are made."""
    global works_on
    works_on = handle


cdef int current_stream(DLDeviceType type, int32_t index, void** out) except -1:
    out[0] = <void*> works_on
    return 0


cdef DLPackExchangeAPI table
table.header.version.major = DLPACK_MAJOR_VERSION
table.header.version.minor = 0
table.header.prev_api = NULL
table.managed_tensor_from_py_object_no_sync = export_object
table.current_work_stream = current_stream

cdef DLPackExchangeAPI newer
newer.header.version.major = DLPACK_MAJOR_VERSION + 1
newer.header.version.minor = 0
newer.header.prev_api = &table.header


class Fast(Exchanged):
    """Its type has the table."""
    __dlpack_c_exchange_api__ = PyCapsule_New(&table, b"dlpack_exchange_api", NULL)


class Newer(Exchanged):
    """Its table is of DLPack 2, and leads to the one of DLPack 1."""
    __dlpack_c_exchange_api__ = PyCapsule_New(&newer, b"dlpack_exchange_api", NULL)


class Unnamed(Exchanged):
    """Its capsule is something else."""
    __dlpack_c_exchange_api__ = PyCapsule_New(&table, b"something", NULL)


# Our own table, and torch's.

cdef const DLPackExchangeAPI* table_of(bint ours) except NULL:
    if ours:
        return exchange_api()
    import torch as python_torch
    return <const DLPackExchangeAPI*> PyCapsule_GetPointer(
        python_torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"
    )


def api_version(bint ours):
    cdef const DLPackExchangeAPIHeader* header = &table_of(ours).header
    return header.version.major, header.version.minor, header.prev_api != NULL


def api_round_trip(bint ours, tensor):
    cdef DLManagedTensorVersioned* managed = NULL
    cdef void* out = NULL
    table_of(ours).managed_tensor_from_py_object_no_sync(<void*> tensor, &managed)
    table_of(ours).managed_tensor_to_py_object_no_sync(managed, &out)
    result = <object> <PyObject*> out
    cdef PyObject* owned = <PyObject*> out
    Py_DECREF_(owned)
    return result


def api_view(bint ours, tensor):
    cdef DLTensor view
    table_of(ours).dltensor_from_py_object_no_sync(<void*> tensor, &view)
    return told(view)


def api_stream(bint ours, int device_type, int index):
    cdef void* stream = NULL
    table_of(ours).current_work_stream(<DLDeviceType> device_type, index, &stream)
    return <size_t> stream


cdef void set_error(void* context, const char* kind, const char* message) noexcept with gil:
    (<list> <PyObject*> context).append((kind.decode(), message.decode()))


def api_allocate(bint ours, sizes, int code, int bits, int lanes=1, int device_type=1):
    """A tensor, and what went wrong."""
    cdef int64_t shape[8]
    cdef DLTensor prototype
    cdef DLManagedTensorVersioned* managed = NULL
    cdef int status
    errors = []
    for d, size in enumerate(sizes):
        shape[d] = size
    prototype.ndim = len(sizes)
    prototype.shape = shape
    prototype.strides = NULL
    prototype.dtype.code = code
    prototype.dtype.bits = bits
    prototype.dtype.lanes = lanes
    prototype.device.device_type = <DLDeviceType> device_type
    prototype.device.device_id = 0
    status = table_of(ours).managed_tensor_allocator(&prototype, &managed, <void*> errors, set_error)
    return None if status else torch.wrap(from_managed(managed)), errors


cdef extern from "Python.h":
    void Py_DECREF_ "Py_DECREF"(PyObject* obj)
