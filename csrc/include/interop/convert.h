// Converts a Cython caller's arguments to the parameter types of ATen functions.
//
// The declarations for Cython leave the type of an argument open if ATen takes a list, an optional value or one of
// several overloads. C++ sees the argument's real type here and decides. An unsupported type fails to compile; a
// Python object is checked at run time.
#pragma once

#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/from_python.h"
#include "interop/unwrap_reference.h"

namespace interop {

// A Python object: Cython's `object`, or a pointer to the struct of an extension type, or of a type derived from one.
template <class A>
concept Object =
    std::is_same_v<A, PyObject*> || requires(const A a) { a->ob_base; } || requires(const A a) { a->__pyx_base; };

// A tuple of C values: Cython's struct for it has the fields f0, f1, ...
template <class A>
concept CTuple = requires(const A a) { a.f0; };

// Integers, including C enums.
template <class A>
concept IntegralOrEnum = std::is_integral_v<A> || (std::is_enum_v<A> && std::is_convertible_v<A, int64_t>);

template <class A>
concept Arithmetic = IntegralOrEnum<A> || std::is_floating_point_v<A>;

// Recognises std::complex and c10::complex by their members; their headers are long.
template <class T>
inline constexpr bool is_complex = requires(const T& number) {
  typename T::value_type;
  number.real();
  number.imag();
};

// Instead of std::min and std::max, whose header is long.
constexpr int limited(int cost) noexcept {
  return cost < impossible ? cost : impossible;
}
constexpr int highest(std::initializer_list<int> costs) noexcept {
  int found = 0;
  for (const int cost : costs) {
    found = cost > found ? cost : found;
  }
  return found;
}

// Converts an argument to a parameter of type P.
//
// `of<A>` is the cost of an argument of the C++ type A: 0 for the type itself, 1 or more for a conversion,
// `impossible` if there is none. `of_object` is the cost of a Python object; it does not raise. `from` and
// `from_object` convert. Their results may borrow from the argument. The two functions for objects need the GIL.
template <class P>
struct Convert {
  template <class A>
  static constexpr int of = std::is_same_v<A, P>                                          ? 0
                            : std::is_convertible_v<A, P> && !Object<A> && !Arithmetic<A> ? 1
                                                                                          : impossible;
  template <class A>
  static const A& from(const A& a, Argument) {
    return a;
  }
  // Other types have no Python equivalent.
  static int of_object(PyObject*) noexcept {
    return impossible;
  }
  static P from_object(PyObject* obj, Argument argument) {
    python::refuse(obj, argument, "a C++ object");
  }
};

template <>
struct Convert<at::Tensor> {
  template <class A>
  static constexpr int of = std::is_same_v<A, at::Tensor> ? 0 : impossible;
  static int of_object(PyObject* obj) noexcept {
    return is_tensor(obj) ? 0 : impossible;
  }
  static const at::Tensor& from(const at::Tensor& a, Argument) {
    return a;
  }
  static decltype(auto) from_object(PyObject* obj, Argument argument) {
    python::require(is_tensor(obj), obj, argument, "a torch.Tensor");
    return tensor_of(obj);
  }
};

template <>
struct Convert<at::Scalar> {
  template <class A>
  static constexpr int of = std::is_same_v<A, at::Scalar>                        ? 0
                            : Arithmetic<A> || is_complex<A>                     ? 1
                            : std::is_convertible_v<A, at::Scalar> && !Object<A> ? 2
                                                                                 : impossible;
  static int of_object(PyObject* obj) {
    return python::is_number(obj) ? 0 : python::is_number_in_a_tensor(obj) ? 2 : impossible;
  }
  template <class A>
  static at::Scalar from(const A& a, Argument) {
    if constexpr (is_complex<A>) {
      return complex_scalar(a.real(), a.imag());
    } else if constexpr (std::is_floating_point_v<A>) {
      return at::Scalar(static_cast<double>(a));
    } else if constexpr (std::is_same_v<A, bool> || !IntegralOrEnum<A>) {
      return at::Scalar(a);
    } else if constexpr (std::is_unsigned_v<A>) {
      return at::Scalar(static_cast<uint64_t>(a));
    } else {
      return at::Scalar(static_cast<int64_t>(a));
    }
  }
  static at::Scalar from_object(PyObject* obj, Argument argument) {
    return python::to_scalar(obj, argument);
  }
};

// An integer can stand for a bool, because Cython passes True as an int. Any other overload takes precedence.
template <>
struct Convert<bool> {
  template <class A>
  static constexpr int of = std::is_same_v<A, bool> ? 0
                            : IntegralOrEnum<A>     ? 8
                                                    : impossible;
  static int of_object(PyObject* obj) noexcept {
    return python::is_truth_value(obj) ? 0 : impossible;
  }
  template <class A>
  static bool from(const A& a, Argument) {
    return static_cast<bool>(a);
  }
  static bool from_object(PyObject* obj, Argument argument) {
    return python::to_bool(obj, argument);
  }
};

template <>
struct Convert<int64_t> {
  template <class A>
  static constexpr int of = std::is_same_v<A, bool> ? 2
                            : IntegralOrEnum<A>     ? 0
                                                    : impossible;
  static int of_object(PyObject* obj) {
    if (PyBool_Check(obj) || !PyIndex_Check(obj)) {
      return impossible;
    }
    return PyLong_Check(obj) ? 0 : python::is_number_in_a_tensor(obj) ? 3 : is_tensor(obj) ? impossible : 1;
  }
  template <class A>
  static int64_t from(const A& a, Argument) {
    return static_cast<int64_t>(a);
  }
  static int64_t from_object(PyObject* obj, Argument argument) {
    return python::to_integer(obj, argument);
  }
};

template <>
struct Convert<double> {
  template <class A>
  static constexpr int of = std::is_floating_point_v<A> ? 0
                            : IntegralOrEnum<A>         ? 1
                                                        : impossible;
  static int of_object(PyObject* obj) noexcept {
    return PyFloat_Check(obj) ? 0 : python::is_number(obj) && !PyComplex_Check(obj) ? 1 : impossible;
  }
  template <class A>
  static double from(const A& a, Argument) {
    return static_cast<double>(a);
  }
  static double from_object(PyObject* obj, Argument argument) {
    return python::to_double(obj, argument);
  }
};

// A type P that torch has in both C++ and Python: `is` recognises the Python object, and `to` converts it or raises.
template <class P, auto is, auto to>
struct ConvertKind {
  template <class A>
  static constexpr int of = std::is_same_v<A, P>                                          ? 0
                            : std::is_convertible_v<A, P> && !Object<A> && !Arithmetic<A> ? 1
                                                                                          : impossible;
  static int of_object(PyObject* obj) noexcept {
    return is(obj) ? 0 : impossible;
  }
  template <class A>
  static P from(const A& a, Argument) {
    return P(a);
  }
  static P from_object(PyObject* obj, Argument argument) {
    return to(obj, argument);
  }
};

template <>
struct Convert<at::ScalarType> : ConvertKind<at::ScalarType, python::is_dtype_like, python::to_dtype> {};
template <>
struct Convert<at::Device> : ConvertKind<at::Device, python::is_device_like, python::to_device> {};
template <>
struct Convert<at::Layout> : ConvertKind<at::Layout, is_layout, python::to_layout> {};
template <>
struct Convert<at::MemoryFormat> : ConvertKind<at::MemoryFormat, is_memory_format, python::to_memory_format> {};
template <>
struct Convert<at::Generator> : ConvertKind<at::Generator, is_generator, python::to_generator> {};
template <>
struct Convert<c10::string_view> : ConvertKind<c10::string_view, python::is_text, python::to_string> {};
template <>
struct Convert<at::TensorOptions> : ConvertKind<at::TensorOptions, python::is_options, python::to_options> {};

namespace detail {

// A list that the conversion makes, and its conversion to ArrayRef. It lives until the call returns.
template <class T, class Values>
struct OwnedList {
  Values values;
  operator at::ArrayRef<T>() const {
    return at::ArrayRef<T>(values.data(), values.size());
  }
};

// The same for a parameter that may be None. It must not convert to ArrayRef: both kinds of optional would prefer it.
template <class T, class Values>
struct OptionalOwnedList {
  std::optional<OwnedList<T, Values>> list;
  operator at::OptionalArrayRef<T>() const {
    return list ? at::OptionalArrayRef<T>(at::ArrayRef<T>(*list)) : at::OptionalArrayRef<T>();
  }
  operator std::optional<at::ArrayRef<T>>() const {
    return list ? std::optional<at::ArrayRef<T>>(at::ArrayRef<T>(*list)) : std::nullopt;
  }
};

template <class T, class Values>
OwnedList<T, Values> owned(Values values) {
  return {std::move(values)};
}

template <class T>
using Found = c10::SmallVector<T, 6>;

// Calls f with the fields of a tuple of C values.
template <CTuple A, class F>
constexpr auto with_fields(const A& a, F f) {
  static_assert(!requires { a.f8; }, "a tuple of C values can have at most 8 elements here: pass a vector");
  if constexpr (requires { a.f7; }) {
    return f(a.f0, a.f1, a.f2, a.f3, a.f4, a.f5, a.f6, a.f7);
  } else if constexpr (requires { a.f6; }) {
    return f(a.f0, a.f1, a.f2, a.f3, a.f4, a.f5, a.f6);
  } else if constexpr (requires { a.f5; }) {
    return f(a.f0, a.f1, a.f2, a.f3, a.f4, a.f5);
  } else if constexpr (requires { a.f4; }) {
    return f(a.f0, a.f1, a.f2, a.f3, a.f4);
  } else if constexpr (requires { a.f3; }) {
    return f(a.f0, a.f1, a.f2, a.f3);
  } else if constexpr (requires { a.f2; }) {
    return f(a.f0, a.f1, a.f2);
  } else if constexpr (requires { a.f1; }) {
    return f(a.f0, a.f1);
  } else {
    return f(a.f0);
  }
}

template <class T, CTuple A>
auto elements_of(const A& a, Argument argument) {
  return with_fields(a, [&](const auto&... field) {
    return std::array<T, sizeof...(field)>{T(Convert<T>::from(unwrap_reference(field), argument))...};
  });
}

// The highest cost among the fields of a tuple of C values.
template <class T, CTuple A>
inline constexpr int cost_of_elements = decltype(with_fields(std::declval<const A&>(), []<class... F>(const F&...) {
  return std::integral_constant<int, highest({Convert<T>::template of<unwrap_reference_t<F>>...})>();
}))::value;

template <class T>
inline constexpr const char* sequence_of = "a sequence of int";
template <>
inline constexpr const char* sequence_of<double> = "a sequence of float";
template <>
inline constexpr const char* sequence_of<at::Scalar> = "a sequence of numbers";
template <>
inline constexpr const char* sequence_of<at::Tensor> = "a sequence of torch.Tensor";

}  // namespace detail

// Lists. A single number stands for a list of one, as in torch.sum(x, 0).
template <class T>
struct Convert<at::ArrayRef<T>> {
 private:
  static constexpr bool of_numbers = !std::is_same_v<T, at::Tensor>;

  template <class A>
  static constexpr int cost() {
    if constexpr (CTuple<A>) {
      return detail::cost_of_elements<T, A>;
    } else if constexpr (Arithmetic<A>) {
      return of_numbers ? limited(Convert<T>::template of<A> + 2) : impossible;
    } else if constexpr (Object<A>) {
      return impossible;  // of_object() handles objects
    } else if constexpr (std::is_convertible_v<const A&, T>) {
      return impossible;  // an ArrayRef to one value would refer to a temporary
    } else if constexpr (std::is_convertible_v<const A&, at::ArrayRef<T>>) {
      return 0;
    } else if constexpr (of_numbers && requires(const A a) {
                           typename A::value_type;
                           a.begin();
                         }) {
      return limited(Convert<T>::template of<typename A::value_type> + 1);
    } else {
      return impossible;
    }
  }

 public:
  template <class A>
  static constexpr int of = cost<A>();

  static int of_object(PyObject* obj) noexcept {
    if (!python::is_list(obj)) {
      return of_numbers ? limited(Convert<T>::of_object(obj) + 2) : impossible;
    }
    const SharedRef first = python::first_of(obj);
    return first ? Convert<T>::of_object(first.get()) : 1;
  }

  template <class A>
  static auto from(const A& a, Argument argument) {
    if constexpr (CTuple<A>) {
      return detail::owned<T>(detail::elements_of<T>(a, argument));
    } else if constexpr (Arithmetic<A>) {
      return detail::owned<T>(std::array<T, 1>{T(Convert<T>::from(a, argument))});
    } else if constexpr (std::is_convertible_v<const A&, at::ArrayRef<T>>) {
      return at::ArrayRef<T>(a);
    } else {
      detail::Found<T> values;
      for (const auto& value : a) {
        values.push_back(T(Convert<T>::from(value, argument)));
      }
      return detail::owned<T>(std::move(values));
    }
  }

  static auto from_object(PyObject* obj, Argument argument) {
    const auto read = [](PyObject* item, Argument of) { return T(Convert<T>::from_object(item, of)); };
    if (of_numbers && python::is_number(obj)) {
      detail::Found<T> values;
      values.push_back(read(obj, argument));
      return detail::owned<T>(std::move(values));
    }
    return detail::owned<T>(python::to_list<T>(obj, argument, detail::sequence_of<T>, read));
  }
};

template <size_t N>
struct Convert<std::array<bool, N>> {
  template <class A>
  static constexpr int of = std::is_same_v<A, std::array<bool, N>> ? 0
                            : CTuple<A>                            ? 1
                                                                   : impossible;
  static int of_object(PyObject* obj) noexcept {
    return python::is_list(obj) ? 0 : impossible;
  }
  template <class A>
  static std::array<bool, N> from(const A& a, Argument argument) {
    if constexpr (CTuple<A>) {
      return detail::elements_of<bool>(a, argument);
    } else {
      return a;
    }
  }
  static std::array<bool, N> from_object(PyObject* obj, Argument argument) {
    const char* accepted = N == 2   ? "a sequence of 2 bools"
                           : N == 3 ? "a sequence of 3 bools"
                                    : "a sequence of 4 bools";
    const auto values = python::to_list<bool>(obj, argument, accepted, python::to_bool);
    python::require(values.size() == N, obj, argument, accepted);
    std::array<bool, N> result;
    for (size_t i = 0; i < N; ++i) {
      result[i] = values[i];
    }
    return result;
  }
};

namespace detail {

template <class A>
inline constexpr bool is_optional = false;
template <class A>
inline constexpr bool is_optional<std::optional<A>> = true;

// What an optional X is made as, given what an X is made as.
template <class Optional, class Made>
struct MadeOptional {
  using type = Optional;
};
template <class Optional, class T, class Values>
struct MadeOptional<Optional, OwnedList<T, Values>> {
  using type = OptionalOwnedList<T, Values>;
};

// X or None. A value costs one more than for a plain X, so that an overload that requires X wins.
template <class Optional, class X>
struct ConvertOptional {
 private:
  template <class A>
  static constexpr int cost() {
    if constexpr (std::is_same_v<A, std::nullopt_t> || std::is_same_v<A, Optional>) {
      return 0;
    } else if constexpr (is_optional<A>) {
      return limited(Convert<X>::template of<typename A::value_type> + 1);
    } else {
      return limited(Convert<X>::template of<A> + 1);
    }
  }

 public:
  template <class A>
  static constexpr int of = cost<A>();
  static int of_object(PyObject* obj) noexcept {
    return obj == Py_None ? 0 : limited(Convert<X>::of_object(obj) + 1);
  }
  template <class A>
  static decltype(auto) from(const A& a, Argument argument) {
    if constexpr (std::is_same_v<A, std::nullopt_t> || std::is_same_v<A, Optional>) {
      return Optional(a);
    } else if constexpr (is_optional<A>) {
      using Made = typename MadeOptional<Optional, std::remove_cvref_t<decltype(Convert<X>::from(*a, argument))>>::type;
      return a ? Made{Convert<X>::from(*a, argument)} : Made{};
    } else {
      return Convert<X>::from(a, argument);
    }
  }
};

}  // namespace detail

template <class X>
struct Convert<std::optional<X>> : detail::ConvertOptional<std::optional<X>, X> {
  static std::optional<X> from_object(PyObject* obj, Argument argument) {
    return obj == Py_None ? std::nullopt : std::optional<X>(Convert<X>::from_object(obj, argument));
  }
};

namespace detail {

template <class Optional, class T>
struct ConvertOptionalList : ConvertOptional<Optional, at::ArrayRef<T>> {
  static OptionalOwnedList<T, Found<T>> from_object(PyObject* obj, Argument argument) {
    if (obj == Py_None) {
      return {};
    }
    return {Convert<at::ArrayRef<T>>::from_object(obj, argument)};
  }
};

}  // namespace detail

template <class T>
struct Convert<std::optional<at::ArrayRef<T>>> : detail::ConvertOptionalList<std::optional<at::ArrayRef<T>>, T> {};
template <class T>
struct Convert<at::OptionalArrayRef<T>> : detail::ConvertOptionalList<at::OptionalArrayRef<T>, T> {};

// The names that the generated header uses.

template <class P>
int cost_of_object(PyObject* obj) {
  const Gil gil;
  return Convert<P>::of_object(obj);
}

template <class P, class A>
constexpr int cost(const A& a) {
  if constexpr (Object<A>) {
    return cost_of_object<P>(reinterpret_cast<PyObject*>(a));
  } else {
    return Convert<P>::template of<unwrap_reference_t<A>>;
  }
}

// Whether an argument of type A could be a P. A Python object always could.
template <class P, class A>
inline constexpr bool possible = [] {
  if constexpr (Object<A>) {
    return true;
  } else {
    return Convert<P>::template of<unwrap_reference_t<A>> < impossible;
  }
}();

namespace detail {
template <class P>
P none_of();  // not defined
}

// `a` as the parameter P of an ATen function.
template <class P, class A>
decltype(auto) as(const A& a, const char* function, const char* name) {
  static_assert(
      possible<P, A>,
      "this parameter takes no argument of type A: the lines above have A, and the parameter's type P; functions of "
      "ATen that take an at.SymInt have the suffix _symint");
  if constexpr (!possible<P, A>) {
    return detail::none_of<P>();  // the assertion is the only error
  } else if constexpr (Object<A>) {
    return in_python([&]() -> decltype(auto) {
      return Convert<P>::from_object(reinterpret_cast<PyObject*>(a), Argument{function, name});
    });
  } else if constexpr (TensorPlace<A>) {
    return P(a.as_tensor());
  } else {
    return Convert<P>::from(unwrap_reference(a), Argument{function, name});
  }
}

// The index of the overload with the lowest cost, the first of equals; -1 if none fits.
inline constexpr int choose(std::initializer_list<int> costs) noexcept {
  int best = -1;
  int lowest = impossible;
  int i = 0;
  for (const int each : costs) {
    if (each < lowest) {
      best = i;
      lowest = each;
    }
    ++i;
  }
  return best;
}

namespace detail {

// The name of an argument's type in messages. Needs the GIL.
template <class A>
std::string name_of(const A& a) {
  if constexpr (Object<A>) {
    return type_name(reinterpret_cast<PyObject*>(a));
  } else if constexpr (std::is_base_of_v<at::TensorBase, A>) {
    return "Tensor";
  } else if constexpr (Arithmetic<A>) {
    return std::is_same_v<A, bool> ? "bool" : IntegralOrEnum<A> ? "int" : "float";
  } else if constexpr (Convert<at::IntArrayRef>::template of<A> < impossible) {
    return "int[]";
  } else {
    return "a C++ object";
  }
}

}  // namespace detail

// Raises if no overload fits. Only Python objects can cause this at run time; other types fail to compile. The return
// type is deduced, so that clang instantiates this at once and names the line that calls the function.
template <bool any_possible, class... A>
[[noreturn]] auto no_overload(const char* function, const char* accepted, const A&... given) {
  static_assert(any_possible, "no overload of this function takes arguments of these types");
  if constexpr ((Object<A> || ...)) {
    in_python([&] {
      std::string types;
      ((types += (types.empty() ? "" : ", ") + detail::name_of(unwrap_reference(given))), ...);
      raise_error(PyExc_TypeError, "%s(): got (%s), accepted are: %s", function, types.c_str(), accepted);
    });
  }
  __builtin_unreachable();
}

}  // namespace interop
