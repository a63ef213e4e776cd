# cython: freethreading_compatible=True
"""The compiled half of interop: what this build was made with, and what modules register with."""

from interop.exceptions cimport translate_exception

cdef extern from *:
    """
    namespace interop::autograd {
    PyObject* transformed_forward(PyObject* call, PyObject* tensors);
    PyObject* transformed_backward(PyObject* record, PyObject* saved, PyObject* needs, PyObject* grads);
    PyObject* transformed_jvp(PyObject* record, PyObject* saved, PyObject* tangents);
    }
    namespace interop {
    const char* torch_version();
    const char* compiler();
    long cxx_standard();
    PyObject* make_runtime_capsule();
    }
    """
    const char* torch_version "interop::torch_version"() noexcept
    const char* compiler "interop::compiler"() noexcept
    long cxx_standard "interop::cxx_standard"() noexcept
    object make_runtime_capsule "interop::make_runtime_capsule"()
    object _forward "interop::autograd::transformed_forward"(object call, object tensors) except +translate_exception
    object _backward "interop::autograd::transformed_backward"(
        object record, object saved, object needs, object grads) except +translate_exception
    object _jvp "interop::autograd::transformed_jvp"(
        object record, object saved, object tangents) except +translate_exception


def build_info():
    """The torch headers, the compiler and the C++ standard that this build was made with."""
    return {
        "torch": torch_version().decode(),
        "compiler": compiler().decode(),
        "cxx_standard": cxx_standard(),
    }


# For interop._transforms; see csrc/transforms.cpp.

def transformed_forward(call, tuple tensors):
    return _forward(call, tensors)


def transformed_backward(record, tuple saved, tuple needs, tuple grads):
    return _backward(record, saved, needs, grads)


def transformed_jvp(record, tuple saved, tuple tangents):
    return _jvp(record, saved, tangents)


# Modules that register operators look for it: see interop/runtime.h, which has the name.
_runtime_6 = make_runtime_capsule()
