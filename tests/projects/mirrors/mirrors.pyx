# The exact mirror of torch's header beside our light one, in one module: neither gets in the other's way.
cimport ATen as at
cimport torch
from cpython.object cimport PyObject
from torch.csrc.autograd.python_variable cimport (
    THPVariable, THPVariable_Check, THPVariable_CheckExact, THPVariable_Unpack, THPVariable_Wrap, THPVariableClass,
)


def check(obj):
    return THPVariable_Check(obj), THPVariable_CheckExact(obj)


def roundtrip(torch.Tensor x not None):
    return THPVariable_Wrap(THPVariable_Unpack(x))


def same(torch.Tensor x not None):
    """Both structs read the same C++ tensor out of the object."""
    cdef at.Tensor ours = x.cdata, theirs = (<THPVariable*><PyObject*>x).cdata
    return ours.is_same(theirs)


def tensor_class():
    return <object>THPVariableClass
