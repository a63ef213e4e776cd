# The exact mirror: it includes torch's header, and with it pybind11. `cimport torch` compiles several times faster.
cimport ATen as at
from cpython.object cimport PyObject, PyTypeObject
from libcpp cimport bool as cbool

from interop.exceptions cimport translate_exception

cdef extern from "torch/csrc/autograd/python_variable.h":
    # The object struct of torch.Tensor. Only torch allocates it.
    ctypedef struct THPVariable:
        at.Tensor cdata
        PyObject* backward_hooks
        PyObject* post_accumulate_grad_hooks

    PyObject* THPVariableClass  # borrowed: torch.Tensor
    PyObject* ParameterClass  # borrowed: torch.nn.Parameter

    # Has isinstance() semantics, so a class that lies about itself passes. torch.unpack() checks the real type.
    cbool THPVariable_Check(object obj) except +translate_exception
    cbool THPVariable_CheckExact(object obj) noexcept
    cbool THPVariable_CheckTypeExact(PyTypeObject* type) noexcept
    # Borrowed from obj, unchecked.
    const at.Tensor& THPVariable_Unpack(object obj) noexcept
    # A new reference; None for an undefined tensor.
    object THPVariable_Wrap(const at.Tensor& var) except +translate_exception
