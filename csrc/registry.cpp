#include "registry.h"

#include <Python.h>

#include <map>
#include <vector>

#include "interop/error_in_flight.h"
#include "interop/free_threading.h"
#include "interop/torch_ops.h"

namespace interop::registry {

namespace {

struct Registration {
  std::string operator_name;
  std::string key;  // empty for the definition
  c10::RegistrationHandleRAII handle;
};

// Each module's registrations, in order. Never destroyed, because the dispatcher may be gone when static objects are
// destroyed.
std::map<std::string, std::vector<Registration>>& modules() {
  static auto* found = new std::map<std::string, std::vector<Registration>>();
  return *found;
}

// Guards modules(). Call neither the dispatcher nor Python while holding it.
Mutex mutex;

// A mark in the module object. Each execution of a module has a new object, even after a failed import from the same
// shared library.
constexpr const char* MARK = "__interop_registers__";

// Marks it, too, so that one of the threads that ask gets false.
bool is_marked(PyObject* module) {
  PyObject* dict = PyModule_GetDict(module);
#ifdef Py_GIL_DISABLED
  const OwnedRef name(checked(PyUnicode_FromString(MARK)));
  return checked(PyDict_SetDefaultRef(dict, name.get(), Py_True, nullptr)) == 1;
#else
  if (PyDict_GetItemString(dict, MARK)) {
    return true;
  }
  checked(PyDict_SetItemString(dict, MARK, Py_True));
  return false;
#endif
}

}  // namespace

PyObject* section() {
#ifdef Py_GIL_DISABLED
  static PyObject* object = checked(PyDict_New());
  return object;
#else
  return nullptr;  // a dictionary that is made there can run anything, and so come here again
#endif
}

void begin(const Module& module) {
  if (is_marked(module.object)) {
    return;
  }
  // Empty the register's entry before anything runs that could read it: Python code, and threads that it lets run.
  std::vector<Registration> old;
  {
    const Lock lock(mutex);
    old.swap(modules()[module.name]);
  }
  std::vector<std::string> defined;
  for (const Registration& one : old) {
    if (one.key.empty()) {
      defined.push_back(one.operator_name);
    }
  }
  const ErrorInFlight error;
  const auto forget = [&] {
    for (const std::string& name : defined) {
      forget_in_python(name);
    }
  };
  forget();
  while (!old.empty()) {
    old.pop_back();  // kernels before the definition
  }
  forget();  // what other threads have taken from torch.ops in the meantime
}

void add(
    const Module& module,
    const std::string& operator_name,
    const std::string& key,
    c10::RegistrationHandleRAII handle) {
  const Lock lock(mutex);
  modules()[module.name].push_back({operator_name, key, std::move(handle)});
}

const std::string* owner(const std::string& operator_name, const std::string& key) {
  const Lock lock(mutex);
  for (const auto& [module, all] : modules()) {
    for (const Registration& one : all) {
      if (one.operator_name == operator_name && one.key == key) {
        return &module;
      }
    }
  }
  return nullptr;
}

}  // namespace interop::registry
