// The baseline in C++, over the real headers.
#include <torch/csrc/autograd/python_variable.h>
#include <unistd.h>

namespace {

PyObject* empty(PyObject*, PyObject*) {
  Py_RETURN_NONE;
}

PyObject* empty_released(PyObject*, PyObject*) {
  Py_BEGIN_ALLOW_THREADS;
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

// Copies of a tensor, a millisecond apart: the first beside that of its Python object, or a further one. Each is
// dropped after `between` microseconds.
template <bool further>
PyObject* copies(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  int count = 0;
  unsigned between = 0;
  if (!PyArg_ParseTuple(arguments, "O!i|I", THPVariableClass, &object, &count, &between)) {
    return nullptr;
  }
  const at::Tensor& tensor = THPVariable_Unpack(object);
  const at::Tensor kept = further ? tensor : at::Tensor();
  Py_BEGIN_ALLOW_THREADS;
  for (int i = 0; i < count; ++i) {
    usleep(1000);
    const at::Tensor copy = tensor;
    if (between) {
      usleep(between);
    }
  }
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"empty", empty, METH_O, nullptr},
    {"empty_released", empty_released, METH_O, nullptr},
    {"first_copies", copies<false>, METH_VARARGS, nullptr},
    {"further_copies", copies<true>, METH_VARARGS, nullptr},
    {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "gil_cpp", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_gil_cpp() {
  PyObject* module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  return module;
}
