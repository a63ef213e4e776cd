// Makes the indices that Python writes between brackets, from arguments of any type.
#pragma once

// Without this macro, ATen/TensorIndexing.h includes every operator twice to call four of them: 2.5 s, not 1 s.
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#include <ATen/TensorIndexing.h>
#undef AT_PER_OPERATOR_HEADERS
#else
#include <ATen/TensorIndexing.h>
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "interop/scalar.h"
#include "interop/tensor.h"
#include "interop/unwrap_reference.h"

namespace interop {

namespace detail {

template <class T>
inline constexpr bool false_for = false;

inline at::indexing::TensorIndex index_of_scalar(const c10::Scalar& value) {
  TORCH_CHECK_TYPE(
      value.isIntegral(/*includeBool=*/true),
      "an index must be an integer, truth value, slice, None, ellipsis or tensor, got a Scalar of type ", value.type());
  return value.isBoolean() ? at::indexing::TensorIndex(value.toBool()) : at::indexing::TensorIndex(value.toLong());
}

// One part of a slice. As in Python, values beyond the range of int64 become its limits.
inline std::optional<c10::SymInt> slice_part(PyObject* part) {
  if (part == Py_None) {
    return std::nullopt;
  }
  if (!PyIndex_Check(part)) {
    raise_error(PyExc_TypeError, "slice indices must be integers or None, got %.200s", Py_TYPE(part)->tp_name);
  }
  const Py_ssize_t value = checked(PyNumber_AsSsize_t(part, nullptr));
  return c10::SymInt(std::max<int64_t>(value, at::indexing::INDEX_MIN));  // a SymInt below that counts as symbolic
}

// An index that is a Python object. Needs the GIL.
inline at::indexing::TensorIndex index_of_object(PyObject* object) {
  if (object == Py_None) {
    return at::indexing::None;
  }
  if (object == Py_Ellipsis) {
    return at::indexing::Ellipsis;
  }
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    return at::indexing::Slice(slice_part(slice->start), slice_part(slice->stop), slice_part(slice->step));
  }
  if (is_tensor(object)) {
    return reinterpret_cast<THPVariable*>(object)->cdata;
  }
  if (PyBool_Check(object)) {
    return object == Py_True;
  }
  if (PyIndex_Check(object)) {
    return index_of_scalar(scalar_of_object(object));
  }
  raise_error(
      PyExc_TypeError,
      "an index must be an integer, truth value, slice, None, ellipsis or tensor, got %.200s; "
      "convert a list with torch.tensor(...) first",
      Py_TYPE(object)->tp_name);
}

// Converts one index, by its type. Cython writes its own type of the argument, as in indices<long>(1). Only this type
// tells True, an int of value 1, from the number 1, a long. A variable of type int cannot be told from a bool.
template <class T>
at::indexing::TensorIndex index_of(const T& value) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    TORCH_CHECK_TYPE(value.defined(), "an index must not be an undefined tensor; for a new axis, write at.None_");
    return at::indexing::TensorIndex(value);
  } else if constexpr (
      std::is_same_v<T, bool> || std::is_same_v<T, at::indexing::Slice> ||
      std::is_same_v<T, at::indexing::EllipsisIndexType> || std::is_same_v<T, std::nullopt_t> ||
      std::is_same_v<T, c10::SymInt>) {
    return at::indexing::TensorIndex(value);
  } else if constexpr (std::is_same_v<T, c10::Scalar>) {
    return index_of_scalar(value);
  } else if constexpr (std::is_same_v<T, PyObject*>) {
    return index_of_object(value);
  } else if constexpr (std::is_same_v<T, THPVariable*>) {
    return index_of_object(reinterpret_cast<PyObject*>(value));
  } else if constexpr (std::is_same_v<T, int>) {
    static_assert(
        false_for<T>,
        "indices() takes no C int, because Cython also passes True as one: write <long>i for an element, "
        "scalar(flag) for a truth value");
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t)) {
      TORCH_CHECK_INDEX(
          value <= static_cast<T>(std::numeric_limits<int64_t>::max()), "index ", value, " is out of range");
    }
    return at::indexing::TensorIndex(static_cast<int64_t>(value));
  } else {
    static_assert(
        false_for<T>, "an index must be an integer, truth value, at.Slice, at.None_, at.Ellipsis or at.Tensor");
  }
}

}  // namespace detail

// indices(Slice(0, 3), 1, mask) makes the indices of t[0:3, 1, mask].
template <class... T>
std::vector<at::indexing::TensorIndex> indices(const T&... values) {
  std::vector<at::indexing::TensorIndex> all;
  all.reserve(sizeof...(T));
  (all.push_back(detail::index_of<unwrap_reference_t<T>>(unwrap_reference(values))), ...);
  return all;
}

// For indices whose number is known only at run time.
template <class T>
void add_index(std::vector<at::indexing::TensorIndex>& all, const T& value) {
  all.push_back(detail::index_of<unwrap_reference_t<T>>(unwrap_reference(value)));
}

}  // namespace interop
