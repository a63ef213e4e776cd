# Reads fields by the structs of the real headers.
cimport numpy as cnp
from cpython.complex cimport complex as PyComplex
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

cimport ATen as at
from torch.csrc.autograd.python_variable cimport THPVariable_Check, THPVariable_Unpack

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArray_DescrNumPy2 "_PyArray_DescrNumPy2":
        Py_ssize_t elsize


def read_tensor(x):
    if not THPVariable_Check(x):
        raise TypeError(f"expected torch.Tensor, got {type(x).__name__}")
    return THPVariable_Unpack(x).numel()


def read_dtype(cnp.dtype x not None):
    return (<PyArray_DescrNumPy2*> <PyObject*> x).elsize


def read_complex(PyComplex x not None):
    return x.cval.real


def identity(x):
    """Where the at::Tensor lies, and what it points to: its only field is that pointer."""
    cdef const at.Tensor* field = &THPVariable_Unpack(x)
    return <uintptr_t> field, (<uintptr_t*> field)[0]
