// The baseline: plain C++ over the real headers, and what they say of the layout.
#include "assertions.h"

namespace {

PyObject* wrong_type(PyObject* object, const char* expected) {
  return PyErr_Format(PyExc_TypeError, "expected %s, got %.200s", expected, Py_TYPE(object)->tp_name);
}

PyObject* tensor(PyObject*, PyObject* object) {
  if (!THPVariable_Check(object)) {
    return wrong_type(object, "torch.Tensor");
  }
  return PyLong_FromLongLong(THPVariable_Unpack(object).numel());
}

PyObject* dtype(PyObject*, PyObject* object) {
  if (!PyArray_DescrCheck(object)) {
    return wrong_type(object, "numpy.dtype");
  }
  return PyLong_FromSsize_t(reinterpret_cast<_PyArray_DescrNumPy2*>(object)->elsize);
}

PyObject* complex(PyObject*, PyObject* object) {
  if (!PyComplex_Check(object)) {
    return wrong_type(object, "complex");
  }
  return PyFloat_FromDouble(reinterpret_cast<PyComplexObject*>(object)->cval.real);
}

#define FIELD(type, field) \
  #field, static_cast<int>(offsetof(type, field)), static_cast<int>(sizeof(static_cast<type*>(nullptr)->field))

// Of each type: the names of its fields, where they begin, and what they take, in bytes.
PyObject* layout(PyObject*, PyObject*) {
  return Py_BuildValue(
      "{s:[(sii)(sii)(sii)],s:[(sii)(sii)(sii)(sii)],s:[(sii)(sii)]}", "torch.Tensor", FIELD(THPVariable, cdata),
      FIELD(THPVariable, backward_hooks), FIELD(THPVariable, post_accumulate_grad_hooks), "numpy.dtype",
      FIELD(_PyArray_DescrNumPy2, type_num), FIELD(_PyArray_DescrNumPy2, flags), FIELD(_PyArray_DescrNumPy2, elsize),
      FIELD(_PyArray_DescrNumPy2, alignment), "complex", FIELD(PyComplexObject, cval.real),
      FIELD(PyComplexObject, cval.imag));
}

PyMethodDef methods[] = {
    {"read_tensor", tensor, METH_O, nullptr},
    {"read_dtype", dtype, METH_O, nullptr},
    {"read_complex", complex, METH_O, nullptr},
    {"layout", layout, METH_NOARGS, nullptr},
    {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "unpack_cpp", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_unpack_cpp() {
  import_array();
  return PyModule_Create(&definition);
}
