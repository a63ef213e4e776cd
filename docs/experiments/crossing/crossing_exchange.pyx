# DLPack's C exchange API, through its function pointers: a call for each tensor fills a DLTensor, which borrows. First
# torch's own table, which checks neither that the object is a tensor nor gradients nor conj; then this toolkit's, which
# checks all.
from cpython.object cimport PyObject, PyObject_TypeCheck, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t

from ATen.dlpack cimport DLPackExchangeAPI, DLTensor
from interop.dlpack cimport exchange_api

from torch import Tensor

cdef PyTypeObject* TENSOR = <PyTypeObject*> Tensor
cdef const DLPackExchangeAPI* TORCH = <const DLPackExchangeAPI*> PyCapsule_GetPointer(
    Tensor.__dlpack_c_exchange_api__, "dlpack_exchange_api"
)
cdef const DLPackExchangeAPI* CHECKED = exchange_api()


cdef int64_t size(object x) except -1:
    if not PyObject_TypeCheck(x, TENSOR):
        raise TypeError(f"expected a torch.Tensor, got {type(x).__name__}")
    return _size(TORCH, x)


cdef int64_t checked(object x) except -1:
    return _size(CHECKED, x)


cdef inline int64_t _size(const DLPackExchangeAPI* api, object x) except -1:
    cdef DLTensor view
    api.dltensor_from_py_object_no_sync(<PyObject*> x, &view)
    cdef int64_t result = 1
    for axis in range(view.ndim):
        result *= view.shape[axis]
    return result


def one(a):
    return size(a)


def three(a, b, c):
    return size(a) + size(b) + size(c)


def eight(a, b, c, d, e, f, g, h):
    return size(a) + size(b) + size(c) + size(d) + size(e) + size(f) + size(g) + size(h)


def checked_one(a):
    return checked(a)


def checked_three(a, b, c):
    return checked(a) + checked(b) + checked(c)


def checked_eight(a, b, c, d, e, f, g, h):
    return (
        checked(a) + checked(b) + checked(c) + checked(d) + checked(e) + checked(f) + checked(g) + checked(h)
    )
