// What a module for many releases of torch calls only when it is imported, at the first call of an operator, after an
// error, or with torch's first releases. It is compiled once, when this package is installed, and linked into each such
// module, because it would make each of them slower to compile. It uses no more than the oldest of torch's and
// CPython's interfaces that a module can be built for.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

#include "interop/error_text.h"
#include "interop/exceptions.h"
#include "interop/stable/python_call.h"

#undef PyModuleDef_Init  // which calls init_module() in a module

namespace interop::stable {

// ---- Errors.

Joined::Joined(const Part* parts, size_t count) {
  size_t size = 1;
  for (size_t i = 0; i < count; ++i) {
    size += parts[i].text().size();
  }
  char* end = text_ = new char[size];
  for (size_t i = 0; i < count; ++i) {
    const std::string_view part = parts[i].text();
    std::memcpy(end, part.data(), part.size());
    end += part.size();
  }
  *end = 0;
}

void raise_joined(Kind kind, const Part* parts, size_t count) {
  throw Error(kind, Joined(parts, count).text());
}

void fail(const char* function) {
  if (shim.torch_exception_get_what_without_backtrace) {
    throw ShimError(function, shim.torch_exception_get_what_without_backtrace());
  }
  const Part parts[] = {
      function, " failed; torch has written the reason to stderr, because its releases before 2.13 cannot hand it on"};
  throw ShimError(function, Joined(parts, 2).text());
}

// ---- Tensors of Python, in releases without better functions.

Tensor by_capsule(PyObject* object) {
  const OwnedRef arguments(PyTuple_Pack(1, object));
  const OwnedRef capsule(arguments ? PyObject_Call(alloc_handle, arguments.get(), nullptr) : nullptr);
  const auto handle = capsule ? static_cast<AtenTensorHandle>(PyCapsule_GetPointer(capsule.get(), nullptr)) : nullptr;
  if (!handle) {
    PyErr_Clear();
    raise(Kind::runtime, "torch cannot make a handle of the tensor");
  }
  return Tensor(handle);
}

PyObject* wrapped_by_capsule(const Tensor& tensor) {
  const OwnedRef capsule(PyCapsule_New(tensor.get(), nullptr, nullptr));
  const OwnedRef arguments(capsule ? PyTuple_Pack(1, capsule.get()) : nullptr);
  PyObject* result = arguments ? PyObject_Call(steal_handle, arguments.get(), nullptr) : nullptr;
  if (!result) {
    PyErr_Clear();
    raise(Kind::runtime, "torch cannot make a Python object of the tensor");
  }
  return result;
}

// ---- Import.

namespace {

constexpr const char* names[] = {
#define INTEROP_NAME(name, ...) #name,
    INTEROP_SHIM(INTEROP_NAME) INTEROP_SHIM_NEWER(INTEROP_NAME)
#undef INTEROP_NAME
};
#define INTEROP_ONE(name) +1
constexpr size_t required = 0 INTEROP_SHIM(INTEROP_ONE);  // the number of names that must be found
#undef INTEROP_ONE
static_assert(sizeof(Shim) == sizeof(names));

// Looks up in the library the functions that the loader left null. Returns the name of the last required function
// that is missing, or null if none is.
const char* find_functions(void* library) {
  const char* missing = nullptr;
  for (size_t i = 0; i < std::size(names); ++i) {
    // Each field is a function pointer, whatever its type.
    char* place = reinterpret_cast<char*>(&shim) + i * sizeof(void*);
    void* address = nullptr;
    std::memcpy(&address, place, sizeof(address));
    if (!address && library) {
      address = dlsym(library, names[i]);
      std::memcpy(place, &address, sizeof(address));
    }
    if (!address && i < required) {
      missing = names[i];
    }
  }
  return missing;
}

// "2.13.0+cpu" as {2, 13}; {0, 0} for text that is not a version.
std::pair<int, int> parse_version(const char* text) {
  std::pair<int, int> version{};
  return std::sscanf(text, "%d.%d", &version.first, &version.second) == 2 ? version : std::pair{0, 0};
}

// Whether two handles refer to one tensor, judged by the word that they point to. Only for find_layout().
bool same_word(const void* a, const void* b) noexcept {
  return std::memcmp(a, b, sizeof(void*)) == 0;
}

// Checks with two live tensors whether the word behind an object's header equals the one that torch's own handle
// points to.
bool find_layout() {
  const char* wish = std::getenv("INTEROP_BORROW");
  if (wish && std::string_view(wish) == "0") {
    return true;
  }
  try {
    bool found = true;
    for (int i = 0; i < 2; ++i) {
      const OwnedRef tensor(PyObject_CallMethod(torch_module, "empty", "i", i));
      if (!tensor) {
        return false;
      }
      // A tensor object is larger than a header and two words, so this memory may be read.
      const char* behind_head = reinterpret_cast<const char*>(tensor.get()) + sizeof(PyObject);
      found = found && same_word(official(tensor.get()).get(), behind_head);
    }
    borrows = found;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
    return false;
  }
  return true;
}

// Imports torch and fills `shim`. On failure, returns false with an error set. Needs the GIL. A second call does
// nothing.
bool initialize(const char* floor) {
  if (torch_module) {
    return true;
  }
  const OwnedRef torch(PyImport_ImportModule("torch"));
  if (!torch) {
    return false;
  }
  const OwnedRef version(PyObject_GetAttrString(torch.get(), "__version__"));
  const OwnedRef text(version ? PyObject_Str(version.get()) : nullptr);
  const char* running = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  if (!running) {
    return false;
  }
  const char* missing = nullptr;
  if (parse_version(running) >= parse_version(floor)) {
    void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    missing = find_functions(library);
    if (library) {
      dlclose(library);  // torch keeps it open
    }
  } else {
    missing = "";
  }
  if (missing) {
    PyErr_Format(
        PyExc_ImportError, "this module was built for torch >= %s, and torch %s is installed%s%s; upgrade torch", floor,
        running, *missing ? ", whose library has no " : "", missing);
    return false;
  }
  tensor_type = PyObject_GetAttrString(torch.get(), "Tensor");
  const OwnedRef c_module(PyObject_GetAttrString(torch.get(), "_C"));
  const OwnedRef aoti(c_module ? PyObject_GetAttrString(c_module.get(), "_aoti") : nullptr);
  if (aoti) {
    alloc_handle = PyObject_GetAttrString(aoti.get(), "unsafe_alloc_void_ptr_from_tensor");
    steal_handle = PyObject_GetAttrString(aoti.get(), "alloc_tensor_by_stealing_from_void_ptr");
  }
  if (!tensor_type || ((!alloc_handle || !steal_handle) && !shim.torch_tensor_to_pyobject)) {
    return false;  // the missing attribute's error is set
  }
  PyErr_Clear();
  torch_module = Py_NewRef(torch.get());
  if (!find_layout()) {
    Py_CLEAR(torch_module);
    return false;
  }
  return true;
}

PyObject* create_in_another(PyObject*, PyModuleDef*) {
  PyErr_SetString(
      PyExc_ImportError,
      "this module, and torch, can be imported by the main interpreter of a process only, and this is another one");
  return nullptr;
}

// What PyInit_ returns for another interpreter. If it raised an error itself, CPython 3.13 would abort up to 3.13.12.
PyObject* init_in_another(const char* name) {
  static PyModuleDef_Slot slots[] = {
      {Py_mod_create, reinterpret_cast<void*>(&create_in_another)},
#ifdef Py_GIL_DISABLED
      {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
      {0, nullptr},
  };
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, name, nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}

}  // namespace

// Cython also rejects a second interpreter, but only after the import of torch, which hangs there or is rejected by
// CPython. From 3.13 on, CPython calls PyInit_ on behalf of another interpreter with a temporary thread state of the
// main one, which torch would keep. That state has no frame. An import has some, those of importlib.
PyObject* init_module(PyModuleDef* definition, const char* floor) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0 || !PyEval_GetFrame()) {
    return init_in_another(definition->m_name);
  }
  return initialize(floor) ? PyModuleDef_Init(definition) : nullptr;
}

// ---- Operators.

namespace {

// The types of a schema's arguments and results as a list of strings.
OwnedRef types_of(PyObject* schema) {
  OwnedRef types(checked(PyList_New(0)));
  for (const char* part : {"arguments", "returns"}) {
    const OwnedRef listed(checked(PyObject_GetAttrString(schema, part)));
    const Py_ssize_t size = checked(PySequence_Size(listed.get()));
    for (Py_ssize_t i = 0; i < size; ++i) {
      const OwnedRef one(checked(PySequence_GetItem(listed.get(), i)));
      const OwnedRef type(checked(PyObject_GetAttrString(one.get(), "type")));
      const OwnedRef text(checked(PyObject_Str(type.get())));
      checked(PyList_Append(types.get(), text.get()));
    }
    checked(PyList_Append(types.get(), Py_None));  // separates arguments from results
  }
  return types;
}

// Turns __torch_function__ off in its scope, because ATen's own functions do not dispatch to it. Needs the GIL.
class WithoutTorchFunction {
 public:
  WithoutTorchFunction() {
    const OwnedRef c_module(torch_attribute("_C"));
    mode_ = OwnedRef(checked(PyObject_CallMethod(c_module.get(), "DisableTorchFunction", nullptr)));
    const OwnedRef entered(checked(PyObject_CallMethod(mode_.get(), "__enter__", nullptr)));
  }
  ~WithoutTorchFunction() {
    const ErrorInFlight error;
    const OwnedRef left(PyObject_CallMethod(mode_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  }
  WithoutTorchFunction(const WithoutTorchFunction&) = delete;
  WithoutTorchFunction& operator=(const WithoutTorchFunction&) = delete;

 private:
  OwnedRef mode_;
};

}  // namespace

void Operator::check() {
  in_python([&] {
    const OwnedRef c_module(checked(PyObject_GetAttrString(torch_module, "_C")));
    const OwnedRef written(checked(PyUnicode_FromFormat("aten::%s", schema_)));
    const OwnedRef expected(checked(PyObject_CallMethod(c_module.get(), "parse_schema", "O", written.get())));
    const OwnedRef running(checked(PyObject_CallMethod(c_module.get(), "_get_schema", "ss", name_, overload_)));
    const OwnedRef theirs = types_of(running.get());
    if (checked(PyObject_RichCompareBool(types_of(expected.get()).get(), theirs.get(), Py_NE))) {
      raise_error(
          PyExc_RuntimeError,
          "this module was compiled for the operator %U, which in the torch that is installed is %S; build it with "
          "that torch, or call the operator another way",
          written.get(), running.get());
    }
  });
  checked_.store(true, std::memory_order_release);
}

OwnedRef PythonOperator::call_with(std::initializer_list<const char*> names, OwnedRef* objects, size_t count) {
  const size_t by_position = count - names.size();
  const OwnedRef positional(checked(PyTuple_New(static_cast<Py_ssize_t>(by_position))));
  for (size_t i = 0; i < by_position; ++i) {
    checked(PyTuple_SetItem(positional.get(), static_cast<Py_ssize_t>(i), objects[i].release()));
  }
  const OwnedRef keywords(checked(PyDict_New()));
  size_t next = by_position;
  for (const char* name : names) {
    checked(PyDict_SetItemString(keywords.get(), name, objects[next++].get()));
  }
  const WithoutTorchFunction mode;
  return OwnedRef(checked(PyObject_Call(function(), positional.get(), keywords.get())));
}

OwnedRef without_torch_function(PyObject* object, const char* name, bool call) {
  const WithoutTorchFunction mode;
  return OwnedRef(checked(call ? PyObject_CallMethod(object, name, nullptr) : PyObject_GetAttrString(object, name)));
}

PyObject* PythonOperator::function() {
  if (PyObject* known = function_.load(std::memory_order_acquire)) {
    return known;
  }
  operator_.check();
  const OwnedRef ops(torch_attribute("ops"));
  const OwnedRef aten(checked(PyObject_GetAttrString(ops.get(), "aten")));
  const OwnedRef packet(checked(PyObject_GetAttrString(aten.get(), operator_.name() + std::strlen("aten::"))));
  const char* overload = operator_.overload();
  OwnedRef found(checked(PyObject_GetAttrString(packet.get(), *overload ? overload : "default")));
  PyObject* first = nullptr;
  return function_.compare_exchange_strong(first, found.get(), std::memory_order_acq_rel) ? found.release() : first;
}

// ---- Operators of ours.

// torch itself increments versions in kernels for ADInplaceOrView, which its C interface cannot call on to others.
constexpr char counting[] = R"(
import torch

def register(space, name, schema):
    names = [argument.name for argument in schema.arguments]
    changed = [one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write]
    packet, _, overload = name.partition(".")

    if not changed:
        return None

    def kernel(keys, /, *args, **kwargs):
        operator = getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
        given = dict(zip(names, args)) | kwargs
        try:
            return operator.redispatch(keys & torch._C._after_ADInplaceOrView_keyset, *args, **kwargs)
        finally:
            for one in changed:
                found = given.get(one)
                found = found if isinstance(found, (list, tuple)) else [found]
                torch.autograd.graph.increment_version([one for one in found if one is not None])

    try:  # torch.compile must not compile the kernel, as it does not compile torch's own
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    except ImportError:
        pass
    else:
        set_code_exec_strategy(kernel.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.DEFAULT))
    library = torch.library.Library(space, "IMPL")
    library.impl(name, kernel, "ADInplaceOrView", with_keyset=True)
    return library
)";

OwnedRef count_changes(const char* space, const char* name, PyObject* schema) {
  const OwnedRef code(checked(Py_CompileString(counting, "<torch-interop>", Py_file_input)));
  const OwnedRef names(checked(PyDict_New()));
  const OwnedRef builtins(checked(PyImport_ImportModule("builtins")));
  checked(PyDict_SetItemString(names.get(), "__builtins__", builtins.get()));
  const OwnedRef done(checked(PyEval_EvalCode(code.get(), names.get(), names.get())));
  const OwnedRef arguments(checked(Py_BuildValue("(ssO)", space, name, schema)));
  return OwnedRef(checked(PyObject_Call(PyDict_GetItemString(names.get(), "register"), arguments.get(), nullptr)));
}

}  // namespace interop::stable

namespace interop {

namespace {

// The class by its path in the module torch, or RuntimeError if torch has none.
PyObject* class_in_torch(const char* module, const char* name) {
  const OwnedRef found(PyObject_GetAttrString(stable::torch_module, module));
  PyObject* type = found ? PyObject_GetAttrString(found.get(), name) : nullptr;  // torch keeps it
  Py_XDECREF(type);
  PyErr_Clear();
  return type ? type : PyExc_RuntimeError;
}

// torch's C interface reports an error's text but not its class. torch raises each of these texts with one class only,
// apart from that of an index out of bounds: there the operator decides.
PyObject* class_of_text(std::string_view text, std::string_view function) {
  const auto has = [&](const auto& parts) {
    for (const std::string_view part : parts) {
      if (text.find(part) != text.npos) {
        return true;
      }
    }
    return false;
  };
  constexpr std::string_view of_indices[] = {
      " out of range (expected to be in range of ",
      ": Expected reduction dim -1 or 0 for scalar but got ",
      " to have non-zero size.",
      "() cannot be applied to a 0-dim tensor.",
      "argmax(): Expected reduction dim ",
      "argmin(): Expected reduction dim ",
      "Dimension specified as ",
      "index out of range in self",
      "invalid index of a 0-dim tensor",
      "out of range: tried to access index ",
      "select(): index ",
      "shape mismatch: indexing tensors could not be broadcast together ",
      "tensors used as indices must be ",
      "The shape of the mask ",
      "too many indices for tensor of dimension "};
  constexpr std::string_view not_implemented[] = {
      "Could not run '", "There were no tensor arguments to this function ", " not implemented for '",
      " raises unimplemented by default", "Cannot copy out of meta tensor; no data!"};
  constexpr std::string_view of_values[] = {"torch.cat(): expected a non-empty list of Tensors"};
  if (text == "std::bad_alloc" || text == "std::bad_array_new_length") {
    return PyExc_MemoryError;
  }
  if (text.find(" out of memory. Tried to allocate ") != text.npos) {
    return class_in_torch("_C", "OutOfMemoryError");
  }
  if (text.find("could not be completed because the input ") != text.npos ||
      (text.find("linalg.") <= std::strlen("torch.") && text.find(" because the input ") != text.npos)) {
    return class_in_torch("_C", "_LinAlgError");
  }
  const bool outside = text.find(" is out of bounds for dimension ") != text.npos;
  if (has(of_indices) || (text.starts_with("Target ") && text.ends_with(" is out of bounds.")) ||
      (outside && (function == "aten::index" || function == "aten::_unsafe_index" ||
                   function.starts_with("aten::index_put") || function.starts_with("aten::_index_put_impl") ||
                   function.starts_with("aten::index_copy") || function.starts_with("aten::index_fill")))) {
    return PyExc_IndexError;
  }
  return has(not_implemented) ? PyExc_NotImplementedError : has(of_values) ? PyExc_ValueError : PyExc_RuntimeError;
}

PyObject* class_of(stable::Kind kind) {
  switch (kind) {
    case stable::Kind::type:
      return PyExc_TypeError;
    case stable::Kind::value:
      return PyExc_ValueError;
    case stable::Kind::index:
      return PyExc_IndexError;
    case stable::Kind::not_implemented:
      return PyExc_NotImplementedError;
    case stable::Kind::linalg:
      return class_in_torch("_C", "_LinAlgError");
    default:
      return PyExc_RuntimeError;
  }
}

}  // namespace

// The text of a Python error, which a kernel or a mode raised, begins with the name of its class. pybind11 appends the
// traceback.
void detail::set_error_of_shim(std::string_view text, std::string_view function) {
  const std::pair<std::string_view, PyObject*> of_python[] = {
      {"IndexError: ", PyExc_IndexError},     {"KeyError: ", PyExc_KeyError},
      {"MemoryError: ", PyExc_MemoryError},   {"NotImplementedError: ", PyExc_NotImplementedError},
      {"RuntimeError: ", PyExc_RuntimeError}, {"TypeError: ", PyExc_TypeError},
      {"ValueError: ", PyExc_ValueError}};
  PyObject* type = nullptr;
  for (const auto& [prefix, named] : of_python) {
    if (text.starts_with(prefix)) {
      type = named;
      text = text.substr(prefix.size());
      text = text.substr(0, text.find("\n\nAt:\n"));
      break;
    }
  }
  text = without_list_of_kernels(text);
  type = type ? type : class_of_text(text, function);
  const OwnedRef message(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (message) {
    PyErr_SetObject(type, message.get());
  }
}

void translate_exception() noexcept {
  if (PyErr_Occurred()) {
    return;
  }
  try {
    throw;
  } catch (Raised& raised) {
    raised.restore();
  } catch (const stable::Error& error) {
    PyErr_SetString(class_of(error.kind()), error.what());
  } catch (const stable::ShimError& error) {
    detail::set_error_of_shim(error.what(), error.function());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "C++ code threw something that is not a std::exception");
  }
}

}  // namespace interop
