// Unwraps Cython's references. Cython keeps the result of a function that returns a reference, such as `t.add_(1)`,
// in a wrapper: a pointer with a conversion. A template sees the type of the wrapper and not the tensor's.
#pragma once

#include <type_traits>
#include <utility>

namespace interop {

template <class A>
concept CythonReference = requires(A& a) {
  a.operator->();
  *a.operator&();
};

// A stand-in for a tensor at its place in memory.
template <class A>
concept TensorPlace = requires(const A& a) { a.as_tensor(); } && !std::is_copy_constructible_v<A>;

namespace detail {

template <class A>
struct UnwrapReference {
  using type = A;
};

template <TensorPlace A>
struct UnwrapReference<A> {
  using type = std::remove_cvref_t<decltype(std::declval<const A&>().as_tensor())>;
};

template <CythonReference A>
struct UnwrapReference<A> {
  using type = std::remove_cvref_t<decltype(*std::declval<A&>().operator&())>;
};

}  // namespace detail

// A, or the type that it refers to. Cython before 3.2 writes `const A` for an argument passed by const reference.
template <class A>
using unwrap_reference_t = typename detail::UnwrapReference<std::remove_cv_t<A>>::type;

template <class A>
decltype(auto) unwrap_reference(const A& a) {
  if constexpr (CythonReference<A>) {
    return std::as_const(*const_cast<A&>(a).operator&());
  } else if constexpr (TensorPlace<A>) {
    return a.as_tensor();
  } else {
    return (a);
  }
}

}  // namespace interop
