// Makes a std::tuple and returns its elements, for Cython, which cannot write std::get<0>(t).
#pragma once

#include <tuple>

namespace interop {

template <class A, class B>
using tuple2 = std::tuple<A, B>;
template <class A, class B, class C>
using tuple3 = std::tuple<A, B, C>;
template <class A, class B, class C, class D>
using tuple4 = std::tuple<A, B, C, D>;
template <class A, class B, class C, class D, class E>
using tuple5 = std::tuple<A, B, C, D, E>;
template <class A, class B, class C, class D, class E, class F>
using tuple6 = std::tuple<A, B, C, D, E, F>;
template <class A, class B, class C, class D, class E, class F, class G>
using tuple7 = std::tuple<A, B, C, D, E, F, G>;
template <class A, class B, class C, class D, class E, class F, class G, class H, class I>
using tuple9 = std::tuple<A, B, C, D, E, F, G, H, I>;

template <class... T>
std::tuple<T...> make_tuple(const T&... parts) {
  return {parts...};
}

template <class... T>
auto get0(const std::tuple<T...>& t) noexcept {
  return std::get<0>(t);
}
template <class... T>
auto get1(const std::tuple<T...>& t) noexcept {
  return std::get<1>(t);
}
template <class... T>
auto get2(const std::tuple<T...>& t) noexcept {
  return std::get<2>(t);
}
template <class... T>
auto get3(const std::tuple<T...>& t) noexcept {
  return std::get<3>(t);
}
template <class... T>
auto get4(const std::tuple<T...>& t) noexcept {
  return std::get<4>(t);
}
template <class... T>
auto get5(const std::tuple<T...>& t) noexcept {
  return std::get<5>(t);
}
template <class... T>
auto get6(const std::tuple<T...>& t) noexcept {
  return std::get<6>(t);
}
template <class... T>
auto get7(const std::tuple<T...>& t) noexcept {
  return std::get<7>(t);
}
template <class... T>
auto get8(const std::tuple<T...>& t) noexcept {
  return std::get<8>(t);
}

}  // namespace interop
