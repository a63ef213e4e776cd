// The first file of a module that interop.build makes in two: imports torch, checks the ABI, loads the real module.
//
// The real module is linked against torch's libraries. Loaded directly, it fails before any of its code runs. In a
// process that has not imported torch, the loader cannot find torch. After an upgrade of torch, the error is an
// undefined symbol and names no version. This file is linked against Python alone, so it can import torch, compare
// the ABIs, and raise a readable ImportError. interop.build compiles it with
//   INTEROP_INIT    PyInit_ and the last part of the module's name
//   INTEROP_MODULE  that part as a string: the name itself may be a macro, such as errno or linux
//   INTEROP_ABI     the ABI that the module was compiled for, such as "torch_2_13"
//   INTEROP_NATIVE  the file name of the real module, which is in the same folder
// or, if there is no real module, with
//   INTEROP_INIT    as above
//   INTEROP_ABSENT  the message of the ImportError
#include <Python.h>

#include <dlfcn.h>

#include <string>

#define STRING_(x) #x
#define STRING(x) STRING_(x)

PyMODINIT_FUNC INTEROP_INIT();

#ifdef INTEROP_ABSENT

PyMODINIT_FUNC INTEROP_INIT() {
  PyErr_SetString(PyExc_ImportError, INTEROP_ABSENT);
  return nullptr;
}

#else

namespace {

// The path of INTEROP_NATIVE in the folder of this library.
std::string native_path() {
  static const char of_ours = 0;  // the address of PyInit_time would be that of Python's own module
  Dl_info self;
  std::string path;
  if (dladdr(&of_ours, &self) != 0 && self.dli_fname != nullptr) {
    path = self.dli_fname;
  }
  const auto slash = path.rfind('/');
  // dlopen() would search the loader's own folders for a name without a slash.
  return (slash == std::string::npos ? "./" : path.substr(0, slash + 1)) + INTEROP_NATIVE;
}

PyObject* fail(const std::string& path, const std::string& reason) {
  const auto found = reason.find("undefined symbol: ");
  const std::string symbol = found == std::string::npos ? "" : reason.substr(found);
  // torch's own symbols, which another build of torch may lack, are in namespaces of these names.
  const bool of_torch = symbol.find("c10") != std::string::npos || symbol.find("2at") != std::string::npos ||
                        symbol.find("torch") != std::string::npos;
  PyErr_Format(
      PyExc_ImportError, "module '" INTEROP_MODULE "' cannot load its compiled half %s (%s). %s", path.c_str(),
      reason.c_str(),
      !symbol.empty() && !of_torch
          ? "No source of the module defines that function: is its file among the sources of the Extension, and is it "
            "declared the same way in both files?"
          : "Rebuild it, in its project: pip install --no-build-isolation --force-reinstall --no-deps .");
  return nullptr;
}

// The file with the copy of libstdc++ that a library uses; empty if it is torch's copy. Two copies share tables where
// these have the same name, and then the formatting of numbers crashes or gives nothing. Static initialisers of the
// library have run before this check.
std::string other_cxx_library(void* library) {
  constexpr const char* reader_of_tables = "_ZNKSt6locale2id5_M_idEv";  // std::locale::id::_M_id() const
  void* torch = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  void* theirs = torch != nullptr ? dlsym(torch, reader_of_tables) : nullptr;
  void* ours = dlsym(library, reader_of_tables);
  if (torch != nullptr) {
    dlclose(torch);
  }
  Dl_info found;
  return theirs != nullptr && ours != nullptr && ours != theirs && dladdr(ours, &found) != 0 ? found.dli_fname : "";
}

// Imports torch, so that the loader finds the real module's libraries by name, and compares the ABIs. Returns false
// with ImportError set.
bool torch_fits() {
  PyObject* abi = PyImport_ImportModule("interop.abi");
  if (abi == nullptr) {
    return false;
  }
  PyObject* checked = PyObject_CallMethod(abi, "require", "ss", INTEROP_ABI, INTEROP_MODULE);
  Py_DECREF(abi);
  Py_XDECREF(checked);
  return checked != nullptr;
}

// torch has one interpreter: its import in another one hangs or fails. From 3.13 on, CPython calls PyInit_ on behalf of
// another interpreter with a temporary thread state of the main one, which torch would keep. That state has no frame.
// An import has some, those of importlib.
bool in_main_interpreter() {
  return PyInterpreterState_Get() == PyInterpreterState_Main() && PyEval_GetFrame() != nullptr;
}

PyObject* create_in_another(PyObject*, PyModuleDef*) {
  PyErr_SetString(
      PyExc_ImportError,
      "this module, and torch, can be imported by the main interpreter of a process only, and this is another one");
  return nullptr;
}

// What PyInit_ returns for another interpreter. If it raised an error itself, CPython 3.13 would abort up to 3.13.12.
PyObject* init_in_another() {
  static PyModuleDef_Slot slots[] = {
      {Py_mod_create, reinterpret_cast<void*>(&create_in_another)},
#ifdef Py_GIL_DISABLED
      {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
      {0, nullptr},
  };
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, INTEROP_MODULE, nullptr, 0, nullptr, slots};
  return PyModuleDef_Init(&definition);
}

}  // namespace

PyMODINIT_FUNC INTEROP_INIT() {
  if (!in_main_interpreter()) {
    return init_in_another();
  }
  if (!torch_fits()) {
    return nullptr;
  }
  const std::string path = native_path();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(path, dlerror());
  }
  void* init = dlsym(library, STRING(INTEROP_INIT));
  if (init == nullptr) {
    return fail(path, "it has no " STRING(INTEROP_INIT));
  }
  if (const std::string other = other_cxx_library(library); !other.empty()) {
    PyErr_Format(
        PyExc_ImportError,
        "%s has a copy of libstdc++ of its own, and may crash beside torch's copy. Its compiler has no libstdc++.so, "
        "or "
        "adds -static-libstdc++, as LDFLAGS may do as well. Rebuild it without that flag, or with another compiler, "
        "such as CXX=g++",
        other.c_str());
    return nullptr;
  }
  // The real module's PyModuleDef, for multi-phase initialisation. The import system treats it as ours.
  return reinterpret_cast<PyObject* (*)()>(init)();
}

#endif
