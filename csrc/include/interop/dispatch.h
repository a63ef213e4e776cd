// Selects the specialisation of a fused function for a dtype that is known only at run time: AT_DISPATCH for Cython.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "interop/scalar_type_of.h"

namespace interop {

namespace detail {

// Raises torch's message, plus the implemented dtypes.
[[noreturn]] inline void not_implemented(
    const char* name, c10::ScalarType dtype, c10::ArrayRef<c10::ScalarType> implemented) {
  std::string names;
  for (const c10::ScalarType type : implemented) {
    names += (names.empty() ? "" : ", ") + std::string(c10::toString(type));
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "\"", name, "\" not implemented for '", c10::toString(dtype), "', only for ", names);
}

// A function whose last parameter is a pointer to its element type.
template <auto function, class Pointer = decltype(function)>
struct Specialisation;

template <auto function, class R, class... Parameters>
struct Specialisation<function, R (*)(Parameters...)> {
  using All = std::tuple<Parameters...>;
  static constexpr size_t last = sizeof...(Parameters) - 1;
  using Last = std::tuple_element_t<last, All>;
  static_assert(std::is_pointer_v<Last>, "the last parameter must be a pointer to the element type, as in floating* _");
  static constexpr c10::ScalarType dtype = scalar_type_of<std::remove_pointer_t<Last>>();

  // The same function with void* as its last parameter, so that all specialisations have one type.
  template <class Others = std::make_index_sequence<last>>
  struct Erased;
  template <size_t... other>
  struct Erased<std::index_sequence<other...>> {
    static R call(std::tuple_element_t<other, All>... arguments, void* context) {
      return function(std::forward<decltype(arguments)>(arguments)..., static_cast<Last>(context));
    }
  };
};

}  // namespace detail

template <auto first, auto... others>
auto dispatch(c10::ScalarType dtype, const char* name) {
  auto chosen = &detail::Specialisation<first>::template Erased<>::call;
  const auto choose = [&](c10::ScalarType type, auto function) { return type == dtype && (chosen = function, true); };
  if (!(choose(detail::Specialisation<first>::dtype, chosen) || ... ||
        choose(detail::Specialisation<others>::dtype, &detail::Specialisation<others>::template Erased<>::call))) {
    detail::not_implemented(
        name, dtype, {detail::Specialisation<first>::dtype, detail::Specialisation<others>::dtype...});
  }
  return chosen;
}

}  // namespace interop

// A macro, because Cython would pass only the type of the functions on to a C++ template. In the macro's arguments,
// `f[float]` becomes the name of the specialisation, which is a valid template argument.
#define INTEROP_DISPATCH(dtype, name, ...) ::interop::dispatch<__VA_ARGS__>(dtype, name)
