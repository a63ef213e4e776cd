# cython: freethreading_compatible=True
"""The compiled half of interop: build information, and the runtime that modules register with."""

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
    """The version of torch's headers, the compiler and the C++ standard of this build."""
    return {
        "torch": torch_version().decode(),
        "compiler": compiler().decode(),
        "cxx_standard": cxx_standard(),
    }


# Called by interop._transforms; implemented in csrc/transforms.cpp.

def transformed_forward(call, tuple tensors):
    return _forward(call, tensors)


def transformed_backward(record, tuple saved, tuple needs, tuple grads):
    return _backward(record, saved, needs, grads)


def transformed_jvp(record, tuple saved, tuple tangents):
    return _jvp(record, saved, tangents)


# Modules that register operators look up this attribute; interop/runtime.h has its name.
_runtime_7 = make_runtime_capsule()
