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
#include "interop/stable/ivalue.h"
#include "interop/stable/python_call.h"

namespace interop::stable {

// ---- What the types of a kernel are to the dispatcher.

// The type of a schema that a C++ type stands for, as torch prints it.
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
inline constexpr const char* schema_type<at::ScalarType> = "int";  // so torch prints it
template <>
inline constexpr const char* schema_type<at::Layout> = "int";
template <>
inline constexpr const char* schema_type<at::MemoryFormat> = "int";
template <>
inline constexpr const char* schema_type<c10::Device> = "Device";

// What Cython declares, as what the dispatcher passes for it: a C int stands for int or bool, as the schema says.
template <class T>
struct Dispatched {
  using type = T;
};
template <std::floating_point T>
struct Dispatched<T> {
  using type = double;
};
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct Dispatched<T> {
  using type = int64_t;
};
template <>
struct Dispatched<interop::Device> {
  using type = c10::Device;
};
template <>
struct Dispatched<at::IntArrayRef> {
  using type = std::vector<int64_t>;
};
template <class T>
struct Dispatched<std::optional<T>> {
  using type = std::optional<typename Dispatched<T>::type>;
};
template <class T>
using dispatched_t = typename Dispatched<std::remove_cvref_t<T>>::type;

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

// The value of a word as a kernel's parameter, which checks that a smaller integer holds it.
template <class T>
T narrowed(dispatched_t<T> value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!std::in_range<T>(value)) {
      raise(Kind::value, "the number ", value, " does not fit into the kernel's C type: declare it int64_t");
    }
    return static_cast<T>(value);
  } else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, interop::Device>) {
    return T(value);
  } else {
    return value;
  }
}

template <class R>
struct KernelResult {
  static constexpr size_t count = 1;
  static void give(StableIValue* stack, R&& value) {
    stack[0] = Word<dispatched_t<R>>::give(static_cast<dispatched_t<R>>(std::move(value)));
  }
  static bool fits(const std::vector<std::string>& types) {
    return types.size() == 1 && SchemaType<R>::fits(types[0]);
  }
};
template <CTuple R>
struct KernelResult<R> {
  static constexpr size_t count =
      decltype(interop::detail::with_fields(std::declval<const R&>(), []<class... F>(const F&...) {
        return std::integral_constant<size_t, sizeof...(F)>();
      }))::value;
  static void give(StableIValue* stack, R&& value) {
    interop::detail::with_fields(value, [&]<class... F>(const F&... field) {
      ((*stack++ = Word<dispatched_t<F>>::give(static_cast<dispatched_t<F>>(field))), ...);
    });
  }
  static bool fits(const std::vector<std::string>& types) {
    return types.size() == count;
  }
};
template <class... F>
struct KernelResult<std::tuple<F...>> {
  static void give(StableIValue* stack, std::tuple<F...>&& value) {
    std::apply(
        [&](const auto&... field) {
          ((*stack++ = Word<dispatched_t<std::remove_cvref_t<decltype(field)>>>::give(field)), ...);
        },
        value);
  }
  static bool fits(const std::vector<std::string>& types) {
    size_t i = 0;
    return types.size() == sizeof...(F) && (SchemaType<F>::fits(types[i++]) && ...);
  }
};

// ---- Errors that leave a kernel. torch calls it in C++, and knows the classes of the standard library alone: of
// those, these become ValueError, IndexError and MemoryError in Python, and all others RuntimeError.
[[noreturn]] inline void throw_to_torch() {
  try {
    throw;
  } catch (Raised& raised) {
    const Gil gil;
    raised.restore();
    const OwnedRef error = take_error();
    const std::string text = detail::text_of(error.get());
    const auto is = [&](PyObject* type) { return PyErr_GivenExceptionMatches(error.get(), type) != 0; };
    if (is(PyExc_ValueError)) {
      throw std::invalid_argument(text);
    }
    if (is(PyExc_IndexError)) {
      throw std::out_of_range(text);
    }
    if (is(PyExc_MemoryError)) {
      throw std::bad_alloc();
    }
    throw std::runtime_error(is(PyExc_RuntimeError) ? text : type_name(error.get()) + ": " + text);
  } catch (const Error& error) {
    if (error.kind() == Kind::value) {
      throw std::invalid_argument(error.what());
    }
    if (error.kind() == Kind::index) {
      throw std::out_of_range(error.what());
    }
    throw std::runtime_error(error.what());
  }
}

// A function written in Cython, as the dispatcher calls it.
template <auto function, class F = decltype(function)>
struct Kernel;
template <auto function, class R, class... P>
struct Kernel<function, R (*)(P...)> {
  static void call(StableIValue* stack, uint64_t, uint64_t) {
    try {
      // In the order of the stack, whose words are ours.
      size_t next = 0;
      std::tuple<std::remove_cvref_t<P>...> arguments{
          narrowed<std::remove_cvref_t<P>>(taken<dispatched_t<P>>(stack, next))...};
      Callback callback;
      std::apply(
          [&](auto&... argument) {
            if constexpr (std::is_void_v<R>) {
              function(argument...);
              callback.check();
            } else {
              R result = function(argument...);
              callback.check();
              KernelResult<R>::give(stack, std::move(result));
            }
          },
          arguments);
    } catch (const std::bad_alloc&) {
      throw;
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
  }

 private:
  template <class T>
  static T taken(StableIValue* stack, size_t& next) {
    return Word<T>::take(stack[next++]);
  }
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

// What has been registered, for as long as the process lives, or until a module that is executed again registers anew.
class Registrations {
 public:
  // A namespace and a name, of "namespace::name".
  static std::pair<std::string, std::string> split(const std::string& name) {
    const size_t colons = name.find("::");
    if (colons == std::string::npos || colons == 0 || colons + 2 == name.size()) {
      raise(Kind::value, "argument 'name' must be 'namespace::name', got '", name, "'");
    }
    return {name.substr(0, colons), name.substr(colons + 2)};
  }

  static TorchLibraryHandle fragment(const std::string& space) {
    TorchLibraryHandle handle = nullptr;
    INTEROP_CALL(aoti_torch_library_init_fragment, kept(space), __FILE__, __LINE__, &handle);
    return handle;
  }
  static TorchLibraryHandle implementation(const std::string& space, const std::string& key) {
    TorchLibraryHandle handle = nullptr;
    INTEROP_CALL(aoti_torch_library_init_impl, kept(space), kept(key), __FILE__, __LINE__, &handle);
    return handle;
  }

  // Ends what was registered for an operator, by this module or by one that it replaces.
  static void end(const std::string& name) {
    const OwnedRef none(Py_NewRef(Py_None));
    checked(PyDict_SetItemString(all(), name.c_str(), none.get()));
  }
  static void keep(const std::string& name, TorchLibraryHandle handle) {
    const OwnedRef capsule(checked(PyCapsule_New(handle, nullptr, [](PyObject* one) {
      shim.aoti_torch_delete_library_object(static_cast<TorchLibraryHandle>(PyCapsule_GetPointer(one, nullptr)));
    })));
    keep(name, capsule.get());
  }
  static void keep(const std::string& name, PyObject* object) {
    PyObject* dict = all();
    OwnedRef list(Py_XNewRef(PyDict_GetItemString(dict, name.c_str())));
    if (!list || list.get() == Py_None) {
      list = OwnedRef(checked(PyList_New(0)));
      checked(PyDict_SetItemString(dict, name.c_str(), list.get()));
    }
    checked(PyList_Append(list.get(), object));
  }

 private:
  // torch keeps the pointer to a text that it is given.
  static const char* kept(const std::string& text) {
    return (new std::string(text))->c_str();
  }
  // Of the process, so that a module that was built anew finds it.
  static PyObject* all() {
    PyObject* state = checked(PyInterpreterState_GetDict(PyInterpreterState_Get()));
    constexpr const char* key = "torch-interop: operators of stable modules";
    if (!PyDict_GetItemString(state, key)) {
      const OwnedRef dict(checked(PyDict_New()));
      checked(PyDict_SetItemString(state, key, dict.get()));
    }
    return PyDict_GetItemString(state, key);
  }
};

inline void define(const std::string& name, const std::string& schema, std::initializer_list<const char*> tags = {}) {
  const auto [space, operator_name] = Registrations::split(name);
  Registrations::end(name);
  const std::string text = operator_name + schema;
  if (tags.size() == 0) {
    const TorchLibraryHandle handle = Registrations::fragment(space);
    Registrations::keep(name, handle);
    INTEROP_CALL(aoti_torch_library_def, handle, text.c_str());
    return;
  }
  // Through Python, because the C interface has tags from torch 2.12 on.
  const OwnedRef library(torch_attribute("library"));
  const OwnedRef listed(checked(PyList_New(0)));
  const OwnedRef tag_type(torch_attribute("Tag"));
  for (const char* tag : tags) {
    const OwnedRef one(checked(PyObject_GetAttrString(tag_type.get(), tag)));
    checked(PyList_Append(listed.get(), one.get()));
  }
  const OwnedRef fragment(checked(PyObject_CallMethod(library.get(), "Library", "ss", space.c_str(), "FRAGMENT")));
  const OwnedRef method(checked(PyObject_GetAttrString(fragment.get(), "define")));
  const OwnedRef positional(checked(Py_BuildValue("(s)", text.c_str())));
  const OwnedRef keywords(checked(Py_BuildValue("{sO}", "tags", listed.get())));
  const OwnedRef done(checked(PyObject_Call(method.get(), positional.get(), keywords.get())));
  Registrations::keep(name, fragment.get());
}

// The names of torch's dispatch keys for the names that Python has for devices.
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
  const OwnedRef c_module(torch_attribute("_C"));
  const OwnedRef schema(checked(PyObject_CallMethod(c_module.get(), "_get_schema", "ss", name.c_str(), "")));
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
void impl(const std::string& name, const std::string& key) {
  const auto [space, operator_name] = Registrations::split(name);
  Kernel<function>::check(name, schema_types(name, "arguments"), schema_types(name, "returns"));
  const TorchLibraryHandle handle = Registrations::implementation(space, dispatch_key(key));
  Registrations::keep(name, handle);
  INTEROP_CALL(torch_library_impl, handle, operator_name.c_str(), &Kernel<function>::call, target_version);
}

// torch.library.register_autograd: both are Python functions.
inline void register_autograd(const std::string& name, PyObject* backward, PyObject* setup_context) {
  const OwnedRef library(torch_attribute("library"));
  const OwnedRef function(checked(PyObject_GetAttrString(library.get(), "register_autograd")));
  const OwnedRef positional(checked(Py_BuildValue("(sO)", name.c_str(), backward)));
  const OwnedRef keywords(checked(Py_BuildValue("{sO}", "setup_context", setup_context)));
  const OwnedRef done(checked(PyObject_Call(function.get(), positional.get(), keywords.get())));
}

}  // namespace interop::stable

// Macros, because a template sees of a function that Cython hands it no more than its type.
#define INTEROP_STABLE_IMPL(name, key, kernel) ::interop::stable::impl<kernel>(name, key)
