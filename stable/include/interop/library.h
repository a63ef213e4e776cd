// torch.library for functions written in Cython, through torch's C interface.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/callback.h"
#include "interop/convert.h"
#include "interop/device.h"
#include "interop/free_threading.h"
#include "interop/owned_ref.h"
#include "interop/stable/ivalue.h"
#include "interop/stable/python_call.h"
#include "interop/torch_ops.h"

#ifndef PYBIND11_VERSION_MAJOR
namespace pybind11 {

// Declared as pybind11 declares it, whose headers would take longer to compile than all of ours. If a source needs
// them, it includes them before this one. libstdc++ identifies an exception's class by its name, so torch's own
// pybind11 catches it. With another C++ library Python gets RuntimeError, whose text begins with the class.
class __attribute__((visibility("default"))) builtin_exception : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual void set_error() const = 0;
};

}  // namespace pybind11
#endif

namespace interop::stable {

// ---- Mapping of a kernel's types to the dispatcher's.

// The schema type of a C++ type, as torch prints it.
template <class T>
inline constexpr const char* schema_type = nullptr;
template <>
inline constexpr const char* schema_type<Tensor> = "Tensor";
template <>
inline constexpr const char* schema_type<int64_t> = "int";
template <>
inline constexpr const char* schema_type<double> = "float";
template <>
inline constexpr const char* schema_type<bool> = "bool";
template <>
inline constexpr const char* schema_type<std::string> = "str";
template <>
inline constexpr const char* schema_type<at::ScalarType> = "int";  // torch prints it as int
template <>
inline constexpr const char* schema_type<at::Layout> = "int";
template <>
inline constexpr const char* schema_type<at::MemoryFormat> = "int";
template <>
inline constexpr const char* schema_type<c10::Device> = "Device";

// The type that the dispatcher passes for a type declared in Cython. A C int is int or bool, depending on the schema:
// `Int` is what it becomes.
template <class T, class Int = int64_t>
struct Dispatched {
  using type = T;
};
template <std::floating_point T, class Int>
struct Dispatched<T, Int> {
  using type = double;
};
template <class T, class Int>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct Dispatched<T, Int> {
  using type = std::conditional_t<std::is_same_v<T, int>, Int, int64_t>;
};
template <class Int>
struct Dispatched<interop::Device, Int> {
  using type = c10::Device;
};
template <class Int>
struct Dispatched<at::IntArrayRef, Int> {
  using type = std::vector<int64_t>;
};
template <class T, class Int>
struct Dispatched<std::vector<T>, Int> {
  using type = std::vector<typename Dispatched<T, Int>::type>;
};
template <class T, class Int>
struct Dispatched<std::optional<T>, Int> {
  using type = std::optional<typename Dispatched<T, Int>::type>;
};
template <class T, class Int = int64_t>
using dispatched_t = typename Dispatched<std::remove_cvref_t<T>, Int>::type;

template <class T>
struct SchemaType {
  static bool fits(const std::string& type) {
    static_assert(
        schema_type<dispatched_t<T>>,
        "a kernel for many releases of torch cannot have this type: no Scalar, "
        "no pointer and no Python object");
    return type == schema_type<dispatched_t<T>> || (std::is_same_v<T, int> && type == "bool");
  }
  static std::string name() {
    return schema_type<dispatched_t<T>>;
  }
};
template <class T>
struct SchemaType<std::optional<T>> {
  static bool fits(const std::string& type) {
    return type.starts_with("Optional[") && SchemaType<T>::fits(type.substr(9, type.size() - 10));
  }
  static std::string name() {
    return "Optional[" + SchemaType<T>::name() + "]";
  }
};
template <class T>
struct SchemaType<std::vector<T>> {
  static bool fits(const std::string& type) {
    return type.starts_with("List[") && SchemaType<T>::fits(type.substr(5, type.size() - 6));
  }
  static std::string name() {
    return "List[" + SchemaType<T>::name() + "]";
  }
};
template <>
struct SchemaType<at::IntArrayRef> : SchemaType<std::vector<int64_t>> {};

// Converts a dispatcher value to a kernel's parameter. Smaller integers are range-checked. A view parameter views
// `value`.
template <class T>
struct Narrow {
  static T make(dispatched_t<T>& value) {
    if constexpr (std::is_same_v<T, dispatched_t<T>>) {
      return std::move(value);
    } else if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) {
        raise(Kind::value, "the number ", value, " does not fit into the kernel's C type: declare it int64_t");
      }
      return static_cast<T>(value);
    } else {
      return T(value);
    }
  }
};
template <class T>
struct Narrow<std::optional<T>> {
  static std::optional<T> make(dispatched_t<std::optional<T>>& value) {
    return value ? std::optional<T>(Narrow<T>::make(*value)) : std::nullopt;
  }
};
template <class T>
struct Narrow<std::vector<T>> {
  static std::vector<T> make(dispatched_t<std::vector<T>>& values) {
    if constexpr (std::is_same_v<std::vector<T>, dispatched_t<std::vector<T>>>) {
      return std::move(values);
    } else {
      std::vector<T> narrowed;
      for (auto&& value : values) {
        dispatched_t<T> one = value;
        narrowed.push_back(Narrow<T>::make(one));
      }
      return narrowed;
    }
  }
};

// The opposite direction: converts a kernel's result to the type that the dispatcher passes.
template <class To, class From>
To widened(From&& value) {
  if constexpr (std::is_same_v<From, To>) {
    return std::move(value);
  } else if constexpr (std::is_unsigned_v<From> && sizeof(From) == sizeof(To) && !std::is_same_v<To, bool>) {
    if (!std::in_range<To>(value)) {
      raise(Kind::value, "the kernel's result ", value, " does not fit into an int64");
    }
    return static_cast<To>(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? To(widened<typename To::value_type>(std::move(*value))) : To();
  } else if constexpr (requires { value.begin(); }) {
    To result;
    result.reserve(value.size());
    for (auto one : value) {
      result.push_back(widened<typename To::value_type>(std::move(one)));
    }
    return result;
  } else {
    return static_cast<To>(value);
  }
}

// Converts one result to a word. A C int is int or bool in the schema; of a bool torch reads one byte.
template <class T>
StableIValue give_result(T&& value, bool is_bool) {
  using Given = dispatched_t<T>;
  using GivenBool = dispatched_t<T, bool>;
  if constexpr (!std::is_same_v<Given, GivenBool>) {
    if (is_bool) {
      return Word<GivenBool>::give(widened<GivenBool>(std::move(value)));
    }
  }
  return Word<Given>::give(widened<Given>(std::move(value)));
}

// Converts several results. If one does not fit, torch takes none, so those before it are freed.
template <class... F>
void give_results(StableIValue* stack, const std::vector<bool>& is_bool, const F&... fields) {
  size_t given = 0;
  try {
    ((stack[given] = give_result<F>(F(fields), is_bool[given]), ++given), ...);
  } catch (...) {
    size_t i = 0;
    ((i < given ? static_cast<void>(Word<dispatched_t<F>>::take(stack[i])) : void(), ++i), ...);
    throw;
  }
}

template <class R>
struct KernelResult {
  static void give(StableIValue* stack, R&& value, const std::vector<bool>& is_bool) {
    stack[0] = give_result<R>(std::move(value), is_bool[0]);
  }
  static bool fits(const std::vector<std::string>& types) {
    return types.size() == 1 && SchemaType<R>::fits(types[0]);
  }
};
template <CTuple R>
struct KernelResult<R> {
  static void give(StableIValue* stack, R&& value, const std::vector<bool>& is_bool) {
    interop::detail::with_fields(value, [&](const auto&... fields) { give_results(stack, is_bool, fields...); });
  }
  static bool fits(const std::vector<std::string>& types) {
    // Only with_fields() knows the field types, and it passes them to a function. This one is used for its type and
    // never runs.
    using Fits = decltype(interop::detail::with_fields(
        std::declval<const R&>(), []<class... F>(const F&...) { return std::type_identity<std::tuple<F...>>(); }));
    return KernelResult<typename Fits::type>::fits(types);
  }
};
template <class... F>
struct KernelResult<std::tuple<F...>> {
  static void give(StableIValue* stack, std::tuple<F...>&& value, const std::vector<bool>& is_bool) {
    std::apply([&](const auto&... fields) { give_results(stack, is_bool, fields...); }, value);
  }
  static bool fits(const std::vector<std::string>& types) {
    size_t i = 0;
    return types.size() == sizeof...(F) && (SchemaType<F>::fits(types[i++]) && ...);
  }
};

// ---- Exceptions that leave a kernel. torch calls the kernel from C++ and knows no class of ours.

// pybind11, with which torch calls operators for Python, sets the error of this class itself. On other ways torch sees
// a std::runtime_error, whose text names the class of the Python error.
class KernelError final : public pybind11::builtin_exception {
 public:
  KernelError(const std::string& text, Raised&& raised) : builtin_exception(text), raised_(std::move(raised)) {}
  void set_error() const override {
    Raised(raised_).restore();
  }

 private:
  Raised raised_;
};

[[noreturn]] __attribute__((noinline, cold)) inline void throw_to_torch() {
  const Gil gil;
  translate_exception();
  Raised raised;
  const std::string text = detail::text_of(raised.get());
  const bool plain = reinterpret_cast<PyObject*>(Py_TYPE(raised.get())) == PyExc_RuntimeError;
  throw KernelError(plain ? text : type_name(raised.get()) + ": " + text, std::move(raised));
}

// A function written in Cython, in the form that the dispatcher calls.
template <auto function, class F = decltype(function)>
struct Kernel;
template <auto function, class R, class... P>
struct Kernel<function, R (*)(P...)> {
  static void call(StableIValue* stack, uint64_t, uint64_t) {
    try {
      // Take all words first, because we own them and the code below may throw. Braces evaluate in stack order.
      size_t next = 0;
      std::tuple<dispatched_t<P>...> values{Word<dispatched_t<P>>::take(stack[next++])...};
      [&]<size_t... i>(std::index_sequence<i...>) {
        std::tuple<std::remove_cvref_t<P>...> arguments{Narrow<std::remove_cvref_t<P>>::make(std::get<i>(values))...};
        Callback callback;
        if constexpr (std::is_void_v<R>) {
          function(std::get<i>(arguments)...);
          callback.check();
        } else {
          R result = function(std::get<i>(arguments)...);
          callback.check();
          KernelResult<R>::give(stack, std::move(result), is_bool);
        }
      }(std::index_sequence_for<P...>());
    } catch (...) {
      throw_to_torch();
    }
  }

  static void check(
      const std::string& name, const std::vector<std::string>& arguments, const std::vector<std::string>& results) {
    if (arguments.size() != sizeof...(P)) {
      raise(
          Kind::type, name, ": the schema has ", arguments.size(), " arguments, and the kernel ", sizeof...(P),
          " parameters");
    }
    size_t i = 0;
    ((check_one<std::remove_cvref_t<P>>(name, i, arguments[i]), ++i), ...);
    if constexpr (std::is_void_v<R>) {
      check_result(name, results.empty());
    } else {
      check_result(name, KernelResult<R>::fits(results));
    }
    std::vector<bool> found;
    for (const std::string& type : results) {
      found.push_back(type.find("bool") != type.npos);  // or a list of bool, or an optional one
    }
    // The kernel does not know for which of its operators it is called.
    bool differs = false;
    {
      const Lock lock(registering);
      if (is_bool.empty()) {
        is_bool = std::move(found);
      } else {
        differs = is_bool != found;
      }
    }
    if (differs) {
      raise(
          Kind::type, name,
          ": the kernel returns a C int, and it is already registered for an operator whose schema has ",
          "int where this one has bool, or bool where this one has int; write a kernel for each");
    }
  }

 private:
  inline static std::vector<bool> is_bool;  // for each result, from the schema; does not change once it is registered
  inline static Mutex registering;          // guards is_bool until then

  template <class T>
  static void check_one(const std::string& name, size_t i, const std::string& type) {
    if (!SchemaType<T>::fits(type)) {
      raise(
          Kind::type, name, ": argument ", i + 1, " is ", type, " in the schema, and ", SchemaType<T>::name(),
          " in the kernel");
    }
  }
  static void check_result(const std::string& name, bool fits) {
    if (!fits) {
      raise(Kind::type, name, ": the kernel does not return what the schema says");
    }
  }
};

// The register: each module's entries. They live until the process ends or the module is executed again.
class Registrations {
 public:
  // Splits "namespace::name" into its two parts.
  static std::pair<std::string, std::string> split(const std::string& name) {
    const size_t colons = name.find("::");
    if (colons == std::string::npos || colons == 0 || colons + 2 == name.size()) {
      raise(Kind::value, "argument 'name' must be 'namespace::name', got '", name, "'");
    }
    return {name.substr(0, colons), name.substr(colons + 2)};
  }

  // Removes the entry that this module registered when it was executed before; with it, `defined` is gone from torch.
  static void end(const std::string& entry, const std::string& defined = "") {
    const OwnedRef entries = all();
    if (!PyDict_GetItemString(entries.get(), entry.c_str())) {
      return;
    }
    const auto forget = [&] {
      if (!defined.empty()) {
        forget_in_python(defined);
      }
    };
    forget();
    if (PyDict_DelItemString(entries.get(), entry.c_str())) {
      checked(PyErr_ExceptionMatches(PyExc_KeyError) ? 0 : -1);
      PyErr_Clear();  // another thread, which forget() may let run, has just ended it
    }
    forget();  // what other threads have taken from torch.ops in the meantime
  }
  // The result owns the library too, because another thread that executes the same module may replace the entry.
  [[nodiscard]] static OwnedRef keep(const std::string& entry, TorchLibraryHandle handle) {
    OwnedRef capsule(checked(PyCapsule_New(handle, nullptr, [](PyObject* one) {
      shim.aoti_torch_delete_library_object(static_cast<TorchLibraryHandle>(PyCapsule_GetPointer(one, nullptr)));
    })));
    checked(PyDict_SetItemString(all().get(), entry.c_str(), capsule.get()));
    return capsule;
  }
  static void keep(const std::string& entry, PyObject* object) {
    checked(PyDict_SetItemString(all().get(), entry.c_str(), object));
  }

 private:
  // Stored in the interpreter state, so that a rebuilt module finds it.
  static OwnedRef all() {
    PyObject* state = checked(PyInterpreterState_GetDict(PyInterpreterState_Get()));
    constexpr const char* key = "torch-interop 0.1: operators of stable modules";
    const OwnedRef dict(checked(PyDict_New()));  // before the lookup: making an object may run anything
#ifdef Py_GIL_DISABLED
    // Of the modules that threads import at the same time, the first makes the dictionary that all of them use.
    const OwnedRef name(checked(PyUnicode_FromString(key)));
    PyObject* found = nullptr;
    checked(PyDict_SetDefaultRef(state, name.get(), dict.get(), &found));
    return OwnedRef(found);
#else
    if (!PyDict_GetItemString(state, key)) {
      checked(PyDict_SetItemString(state, key, dict.get()));
    }
    return OwnedRef(Py_NewRef(PyDict_GetItemString(state, key)));
#endif
  }
};

// Registers a kernel that increments the versions of what the operator's schema says it changes. The result keeps it
// registered; None if it changes nothing.
__attribute__((cold)) OwnedRef count_changes(const char* space, const char* name, PyObject* schema);

inline void define(const std::string& module, const std::string& name, const std::string& schema) {
  const auto [space, operator_name] = Registrations::split(name);
  const std::string text = operator_name + schema, entry = module + " defines " + name;
  const std::string counts = module + " counts changes of " + name;
  const OwnedRef c_module(torch_attribute("_C"));
  // Parse first: a malformed schema raises before the old definition is gone.
  const OwnedRef parsed(
      checked(PyObject_CallMethod(c_module.get(), "parse_schema", "s", (space + "::" + text).c_str())));
  Registrations::end(counts);
  Registrations::end(entry, name);
  TorchLibraryHandle handle = nullptr;
  INTEROP_CALL(aoti_torch_library_init_fragment, space.c_str(), "torch-interop", 0, &handle);
  const OwnedRef kept = Registrations::keep(entry, handle);
  INTEROP_CALL(aoti_torch_library_def, handle, text.c_str());
  if (schema.find('!') != schema.npos) {
    const OwnedRef counter = count_changes(space.c_str(), operator_name.c_str(), parsed.get());
    if (counter.get() != Py_None) {
      Registrations::keep(counts, counter.get());
    }
  }
}

// Maps Python's device names to torch's dispatch keys.
inline std::string dispatch_key(const std::string& key) {
  if (key == "default") {
    return "CompositeExplicitAutograd";
  }
  const bool is_device = std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::islower(c) != 0; });
  if (!is_device) {
    return key;
  }
  if (key == "meta") {
    return "Meta";
  }
  std::string upper(key);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

// The types of a schema's arguments, or of its results.
inline std::vector<std::string> schema_types(const std::string& name, const char* part) {
  const size_t dot = name.find('.', name.find("::"));
  const std::string plain = name.substr(0, dot), overload = dot == name.npos ? "" : name.substr(dot + 1);
  const OwnedRef c_module(torch_attribute("_C"));
  const OwnedRef schema(
      checked(PyObject_CallMethod(c_module.get(), "_get_schema", "ss", plain.c_str(), overload.c_str())));
  const OwnedRef listed(checked(PyObject_GetAttrString(schema.get(), part)));
  std::vector<std::string> types;
  const Py_ssize_t size = checked(PySequence_Size(listed.get()));
  for (Py_ssize_t i = 0; i < size; ++i) {
    const OwnedRef one(checked(PySequence_GetItem(listed.get(), i)));
    const OwnedRef type(checked(PyObject_GetAttrString(one.get(), "type")));
    types.push_back(detail::text_of(type.get()));
  }
  return types;
}

template <auto function>
void impl(const std::string& module, const std::string& name, const std::string& key) {
  const auto [space, operator_name] = Registrations::split(name);
  Kernel<function>::check(name, schema_types(name, "arguments"), schema_types(name, "returns"));
  const std::string dispatched = dispatch_key(key), entry = module + " implements " + name + " for " + dispatched;
  Registrations::end(entry);
  TorchLibraryHandle handle = nullptr;
  INTEROP_CALL(aoti_torch_library_init_impl, space.c_str(), dispatched.c_str(), "torch-interop", 0, &handle);
  const OwnedRef kept = Registrations::keep(entry, handle);
  INTEROP_CALL(torch_library_impl, handle, operator_name.c_str(), &Kernel<function>::call, target_version);
}

// torch.library.register_autograd. Both arguments are Python functions.
inline void register_autograd(const std::string& name, PyObject* backward, PyObject* setup_context) {
  const OwnedRef library(torch_attribute("library"));
  const OwnedRef function(checked(PyObject_GetAttrString(library.get(), "register_autograd")));
  const OwnedRef positional(checked(Py_BuildValue("(sO)", name.c_str(), backward)));
  const OwnedRef keywords(checked(Py_BuildValue("{sO}", "setup_context", setup_context)));
  const OwnedRef done(checked(PyObject_Call(function.get(), positional.get(), keywords.get())));
}

}  // namespace interop::stable

// Macros, because a template that receives a Cython function sees only its type, and because Cython defines the
// module's name after it includes the headers.
#define INTEROP_STABLE_DEFINE(name, schema) ::interop::stable::define(__Pyx_MODULE_NAME, name, schema)
#define INTEROP_STABLE_IMPL(name, key, kernel) ::interop::stable::impl<kernel>(__Pyx_MODULE_NAME, name, key)
