// Cython's references. What a function returns by reference, `t.add_(1)`, Cython keeps in an object of its own, a
// pointer with a conversion; a template sees that object's type and not the tensor's.
#pragma once

#include <type_traits>
#include <utility>

namespace interop {

template <class A>
concept CythonReference = requires(A& a) {
  a.operator->();
  *a.operator&();
};

namespace detail {

template <class A>
struct UnwrapReference {
  using type = A;
};

template <CythonReference A>
struct UnwrapReference<A> {
  using type = std::remove_cvref_t<decltype(*std::declval<A&>().operator&())>;
};

}  // namespace detail

// What A stands for: A, or what it refers to.
template <class A>
using unwrap_reference_t = typename detail::UnwrapReference<A>::type;

template <class A>
const auto& unwrap_reference(const A& a) noexcept {
  if constexpr (CythonReference<A>) {
    return *const_cast<A&>(a).operator&();
  } else {
    return a;
  }
}

}  // namespace interop
