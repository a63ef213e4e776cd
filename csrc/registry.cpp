#include "registry.h"

#include <Python.h>

#include <map>
#include <vector>

#include "interop/error_in_flight.h"
#include "interop/free_threading.h"
#include "interop/owned_ref.h"

namespace interop::registry {

namespace {

struct Registration {
  std::string operator_name;
  std::string key;  // empty for the definition
  c10::RegistrationHandleRAII handle;
};

// What each module has registered, in the order in which it did. Never destroyed: the dispatcher may be gone when
// static objects go.
std::map<std::string, std::vector<Registration>>& modules() {
  static auto* found = new std::map<std::string, std::vector<Registration>>();
  return *found;
}

// For modules(). Neither the dispatcher nor Python is called while it is held.
Mutex mutex;

// torch.ops keeps what it has looked up, which would outlive the operator: torch.ops.NAMESPACE has it as an attribute,
// and its name in a list. torch.library does the same from torch 2.13 on.
void forget_in_python(const std::string& operator_name) {
  const ErrorInFlight error;
  const size_t colons = operator_name.find("::");
  const std::string in = operator_name.substr(0, colons);
  const std::string name = operator_name.substr(colons + 2, operator_name.find('.', colons) - colons - 2);
  const OwnedRef torch(PyImport_ImportModule("torch"));
  const OwnedRef ops(torch ? PyObject_GetAttrString(torch.get(), "ops") : nullptr);
  const OwnedRef namespaces(ops ? PyObject_GetAttrString(ops.get(), "__dict__") : nullptr);  // what was looked up
  PyObject* found = namespaces ? PyDict_GetItemString(namespaces.get(), in.c_str()) : nullptr;
  if (found && PyObject_HasAttrString(found, "__dict__")) {
    const OwnedRef attributes(PyObject_GetAttrString(found, "__dict__"));
    if (attributes && PyDict_GetItemString(attributes.get(), name.c_str())) {
      const bool deleted = PyObject_DelAttrString(found, name.c_str()) == 0;
      const OwnedRef names(deleted ? PyObject_GetAttrString(found, "_dir") : nullptr);
      const OwnedRef removed(names ? PyObject_CallMethod(names.get(), "remove", "s", name.c_str()) : nullptr);
    }
  }
  PyErr_Clear();
}

// A mark in the module object, which each execution of a module has anew: also the one after an import that failed, in
// the same shared library.
constexpr const char* MARK = "__interop_registers__";

bool is_marked(PyObject* module) {
  PyObject* dict = PyModule_GetDict(module);
  if (PyDict_GetItemString(dict, MARK)) {
    return true;
  }
  checked(PyDict_SetItemString(dict, MARK, Py_True));
  return false;
}

}  // namespace

void begin(const Module& module) {
  if (is_marked(module.object)) {
    return;
  }
  // Out of the register before anything runs that could look into it: Python code, and what it lets run.
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
  while (!old.empty()) {
    old.pop_back();  // kernels before the definition
  }
  for (const std::string& name : defined) {
    forget_in_python(name);
  }
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
