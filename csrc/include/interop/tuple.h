// Reaching the parts of a std::tuple from Cython, which cannot write std::get<0>(t).
#pragma once

#include <tuple>

namespace interop {

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
