// Reorders the axes of a typed memoryview, without a copy: from interop.memview cimport permute.
//
// Each module has its own struct for memoryviews, which Cython defines after the headers that the module includes. So
// the struct is a template parameter here, `View`, and the function that counts its owners is looked up when a
// template is instantiated. Cython names the type of the elements in each call: `permute<float>(view, 1, 0)`.
#pragma once

#include <Python.h>

#include <c10/util/Exception.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>

namespace interop::memview {

namespace detail {

inline std::string text_of(std::initializer_list<Py_ssize_t> axes) {
  std::ostringstream text;
  const char* before = "(";
  for (const Py_ssize_t axis : axes) {
    text << before << axis;
    before = ", ";
  }
  text << ')';
  return text.str();
}

[[noreturn]] inline void refuse_axis(const char* function, const char* argument, Py_ssize_t axis, size_t ndim) {
  const auto count = static_cast<Py_ssize_t>(ndim);
  TORCH_CHECK_VALUE(
      false, function, ": argument '", argument, "' must be an axis of a memoryview of ", ndim, " dimensions, from ",
      -count, " to ", count - 1, ", got ", axis);
}

[[noreturn]] inline void refuse_axes(const char* function, std::initializer_list<Py_ssize_t> axes) {
  TORCH_CHECK_VALUE(false, function, ": argument 'axes' must name each axis once, got ", text_of(axes));
}

// The axis, counted from the first one.
inline size_t axis_of(const char* function, const char* argument, Py_ssize_t axis, size_t ndim) {
  const size_t counted = static_cast<size_t>(axis < 0 ? axis + static_cast<Py_ssize_t>(ndim) : axis);
  if (counted >= ndim) [[unlikely]] {
    refuse_axis(function, argument, axis, ndim);
  }
  return counted;
}

// A memoryview in a cdef class is null before its first assignment, and any memoryview may be None.
template <class View>
void check_view(const char* function, const View& view) {
  if (view.memview == nullptr || reinterpret_cast<PyObject*>(view.memview) == Py_None) [[unlikely]] {
    TORCH_CHECK_TYPE(false, function, ": argument 'view' must be a memoryview, got None");
  }
}

// A view with its axes in that order. It converts to a View when it is assigned; until then it borrows the view.
//
// Functions that may throw must not return a View. If g++ inlines such a function, it builds the result in the
// variable that Cython assigns it to, and treats that variable as written even if the function throws. Cython then
// releases an owner that was never counted.
template <class View, size_t ndim>
struct Reordered {
  const View& view;
  std::array<size_t, ndim> order;

  // The result is another owner of the memory. Counting it needs no GIL: only the first owner would take it.
  operator View() const noexcept {
    View result = view;
    for (size_t d = 0; d < ndim; ++d) {
      result.shape[d] = view.shape[order[d]];
      result.strides[d] = view.strides[order[d]];
      result.suboffsets[d] = view.suboffsets[order[d]];
    }
    __Pyx_INC_MEMVIEW(&result, 0, __LINE__);
    return result;
  }
};

// Moves the entry at `from` to `to`, and the entries between by one.
template <size_t N>
void move(std::array<size_t, N>& order, size_t from, size_t to) noexcept {
  const size_t moved = order[from];
  for (; from < to; ++from) {
    order[from] = order[from + 1];
  }
  for (; from > to; --from) {
    order[from] = order[from - 1];
  }
  order[to] = moved;
}

template <size_t N>
std::array<size_t, N> in_order() noexcept {
  std::array<size_t, N> order;
  for (size_t d = 0; d < N; ++d) {
    order[d] = d;
  }
  return order;
}

}  // namespace detail

// Axis d of the result is axis `axes[d]` of the view.
template <class Element, class View, class... Axes>
detail::Reordered<View, sizeof...(Axes)> permute(const View& view, Axes... axes) {
  constexpr size_t ndim = sizeof...(Axes);
  const std::array<size_t, ndim> order{detail::axis_of("permute", "axes", axes, ndim)...};
  unsigned seen = 0;
  for (const size_t axis : order) {
    seen |= 1U << axis;
  }
  if (seen != (1U << ndim) - 1) [[unlikely]] {
    detail::refuse_axes("permute", {axes...});
  }
  detail::check_view("permute", view);
  return {view, order};
}

// For views of `ndim` dimensions, a number that their struct does not contain.
template <size_t ndim>
struct Rank {
  // Exchanges two axes.
  template <class Element, class View>
  static detail::Reordered<View, ndim> transpose(const View& view, Py_ssize_t axis0, Py_ssize_t axis1) {
    auto order = detail::in_order<ndim>();
    const size_t first = detail::axis_of("transpose", "axis0", axis0, ndim);
    const size_t second = detail::axis_of("transpose", "axis1", axis1, ndim);
    std::swap(order[first], order[second]);
    detail::check_view("transpose", view);
    return {view, order};
  }

  // Moves one axis to the position `destination`; the others keep their order.
  template <class Element, class View>
  static detail::Reordered<View, ndim> movedim(const View& view, Py_ssize_t source, Py_ssize_t destination) {
    auto order = detail::in_order<ndim>();
    const size_t from = detail::axis_of("movedim", "source", source, ndim);
    detail::move(order, from, detail::axis_of("movedim", "destination", destination, ndim));
    detail::check_view("movedim", view);
    return {view, order};
  }
};

}  // namespace interop::memview
