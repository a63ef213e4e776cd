// INTEROP_INSTANTIATE_...: Cython functions that C++ instantiates for each dtype. Cython generates a fused function
// once for each of its types. It generates these functions only once, as templates, because an `auto` parameter
// makes a function a template.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <c10/util/complex.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "interop/dispatch.h"
#include "interop/element_types.h"
#include "interop/scalar_type_of.h"

namespace interop {

// The parameters of instantiate()'s result, without the last one, which is a void*.
namespace signatures {
using Loop = void(char**, const int64_t*, int64_t);
using Loop2d = void(char**, const int64_t*, int64_t, int64_t);
using Part = void(int64_t, int64_t);
}  // namespace signatures

namespace detail {

// The set for an argument of instantiate(), a dtype or a set.
template <auto types>
constexpr auto set_of() {
  if constexpr (std::is_same_v<decltype(types), c10::ScalarType>) {
    return TypeSet<types>{};
  } else {
    return types;
  }
}

// The C++ type of a dtype.
template <c10::ScalarType type, class First, class... Others>
constexpr auto element_of(std::type_identity<First> first, std::type_identity<Others>... others) {
  if constexpr (scalar_type_of<First>() == type) {
    return first;
  } else {
    static_assert(sizeof...(Others), "instantiate() has no C++ type for this dtype");
    return element_of<type>(others...);
  }
}
template <c10::ScalarType type>
using Element = typename decltype(element_of<type>(
    std::type_identity<float>{},
    std::type_identity<double>{},
    std::type_identity<c10::Half>{},
    std::type_identity<c10::BFloat16>{},
    std::type_identity<int64_t>{},
    std::type_identity<int32_t>{},
    std::type_identity<int16_t>{},
    std::type_identity<int8_t>{},
    std::type_identity<uint8_t>{},
    std::type_identity<bool>{},
    std::type_identity<uint16_t>{},
    std::type_identity<uint32_t>{},
    std::type_identity<uint64_t>{},
    std::type_identity<c10::complex<float>>{},
    std::type_identity<c10::complex<double>>{},
    std::type_identity<c10::complex<c10::Half>>{},
    std::type_identity<c10::Float8_e5m2>{},
    std::type_identity<c10::Float8_e5m2fnuz>{},
    std::type_identity<c10::Float8_e4m3fn>{},
    std::type_identity<c10::Float8_e4m3fnuz>{},
    std::type_identity<c10::Float8_e8m0fnu>{}))::type;

// The instance for a type and constants. Its pointer to the type is a void*, so that all instances have one type.
template <class Signature, class Function, class T, class... Constants>
struct Instance;
template <class... Parameters, class Function, class T, class... Constants>
struct Instance<void(Parameters...), Function, T, Constants...> {
  static void call(Parameters... arguments, void* context) {
    Function{}(arguments..., Constants{}..., static_cast<T*>(context));
  }
};

template <class Signature>
struct WithContext;
template <class... Parameters>
struct WithContext<void(Parameters...)> {
  using Pointer = void (*)(Parameters..., void*);
};

template <class Signature, class... Constants, class Function, c10::ScalarType... types>
auto instance(c10::ScalarType dtype, const char* name, Function, TypeSet<types...>) {
  typename WithContext<Signature>::Pointer chosen = nullptr;
  if (!((types == dtype && (chosen = &Instance<Signature, Function, Element<types>, Constants...>::call)) || ...)) {
    not_implemented(name, dtype, {types...});
  }
  return chosen;
}

}  // namespace detail

// The instance of `function` for a dtype among `types`, which are dtypes and sets of them.
template <class Signature, auto... types, class Function>
auto instantiate(c10::ScalarType dtype, const char* name, Function function) {
  return detail::instance<Signature>(dtype, name, function, (TypeSet<>{} + ... + detail::set_of<types>()));
}

// The same for a function whose last parameter but one is a compile-time constant from 0 to `choices` - 1.
template <class Signature, int choices, auto... types, class Function>
auto instantiate_with(int64_t choice, c10::ScalarType dtype, const char* name, Function function) {
  TORCH_CHECK_VALUE(
      choice >= 0 && choice < choices, "\"", name, "\": choice must be from 0 to ", choices - 1, ", got ", choice);
  constexpr auto all = (TypeSet<>{} + ... + detail::set_of<types>());
  typename detail::WithContext<Signature>::Pointer chosen = nullptr;
  const auto choose = [&]<int... k>(std::integer_sequence<int, k...>) {
    ((k == choice &&
      (chosen = detail::instance<Signature, std::integral_constant<int, k>>(dtype, name, function, all))) ||
     ...);
  };
  choose(std::make_integer_sequence<int, choices>{});
  return chosen;
}

}  // namespace interop

// Macros, because the name of a template is not a value. A lambda turns it into one.
#define INTEROP_INSTANTIATE(Signature, dtype, name, function, ...) \
  ::interop::instantiate<Signature, __VA_ARGS__>(dtype, name, [](auto... a) { function(a...); })
#define INTEROP_INSTANTIATE_WITH(Signature, choice, choices, dtype, name, function, ...) \
  ::interop::instantiate_with<Signature, choices, __VA_ARGS__>(choice, dtype, name, [](auto... a) { function(a...); })

#define INTEROP_INSTANTIATE_LOOP(...) INTEROP_INSTANTIATE(::interop::signatures::Loop, __VA_ARGS__)
#define INTEROP_INSTANTIATE_LOOP2D(...) INTEROP_INSTANTIATE(::interop::signatures::Loop2d, __VA_ARGS__)
#define INTEROP_INSTANTIATE_PART(...) INTEROP_INSTANTIATE(::interop::signatures::Part, __VA_ARGS__)
#define INTEROP_INSTANTIATE_LOOP_WITH(...) INTEROP_INSTANTIATE_WITH(::interop::signatures::Loop, __VA_ARGS__)
#define INTEROP_INSTANTIATE_LOOP2D_WITH(...) INTEROP_INSTANTIATE_WITH(::interop::signatures::Loop2d, __VA_ARGS__)
#define INTEROP_INSTANTIATE_PART_WITH(...) INTEROP_INSTANTIATE_WITH(::interop::signatures::Part, __VA_ARGS__)
