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

// What stands for a tensor where it lies, without being one.
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

// What A stands for: A, or what it refers to. Cython before 3.2 writes `const A` for what is passed by a reference to
// const.
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
