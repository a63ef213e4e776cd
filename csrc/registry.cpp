#include "registry.h"

#include <Python.h>

#include <map>
#include <vector>

#include "interop/gil.h"

namespace interop::registry {

namespace {

struct Registration {
  std::string operator_name;
  std::string key;  // empty for the definition
  c10::RegistrationHandleRAII handle;
};

// What one module has registered, in the order in which it did.
struct Registered {
  const void* image;
  std::vector<Registration> all;
};

std::mutex mutex;

// Never destroyed: the dispatcher may be gone when static objects go.
std::map<std::string, Registered>& modules() {
  static auto* found = new std::map<std::string, Registered>();
  return *found;
}

// As torch.library does it: torch.ops keeps what it has looked up, which would outlive the operator.
void forget_in_python(const std::string& operator_name) {
  Gil gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* module = PyImport_ImportModule("torch.library");
  PyObject* done =
      module ? PyObject_CallMethod(module, "_clear_torch_ops_cache", "([s])", operator_name.c_str()) : nullptr;
  Py_XDECREF(done);
  Py_XDECREF(module);
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

}  // namespace

Lock::Lock() : lock_(mutex) {}

void begin(const Module& module) {
  auto [found, is_new] = modules().try_emplace(module.name, Registered{module.image, {}});
  Registered& registered = found->second;
  if (is_new || registered.image == module.image) {
    return;
  }
  registered.image = module.image;
  while (!registered.all.empty()) {
    const Registration& last = registered.all.back();
    const std::string defined = last.key.empty() ? last.operator_name : "";
    registered.all.pop_back();
    if (!defined.empty()) {
      forget_in_python(defined);
    }
  }
}

void add(
    const Module& module,
    const std::string& operator_name,
    const std::string& key,
    c10::RegistrationHandleRAII handle) {
  modules().at(module.name).all.push_back({operator_name, key, std::move(handle)});
}

const std::string* owner(const std::string& operator_name, const std::string& key) {
  for (const auto& [module, registered] : modules()) {
    for (const Registration& one : registered.all) {
      if (one.operator_name == operator_name && one.key == key) {
        return &module;
      }
    }
  }
  return nullptr;
}

}  // namespace interop::registry
