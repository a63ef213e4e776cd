// Checks of a CUDA kernel's arguments, with their error messages. Needs no CUDA header.
//
// These checks run before check_data(), so that tests can try them with fake tensors, which claim to be on a GPU and
// have no memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <initializer_list>
#include <string>

#include "interop/check_memory.h"

namespace interop::cuda {

// Raises unless the tensor is on a CUDA device.
inline void check_device(const at::TensorBase& tensor, const char* argument) {
  TORCH_CHECK_TYPE(tensor.defined(), ArgumentName{argument}, " must be a tensor, got an undefined one (None)");
  TORCH_CHECK_VALUE(
      tensor.is_cuda(), ArgumentName{argument}, " must be on a CUDA device, got ", tensor.device(),
      "; copy it with .cuda()");
}

// Raises unless both tensors are on the same CUDA device.
inline void check_same_device(
    const at::TensorBase& tensor, const char* argument, const at::TensorBase& first, const char* first_argument) {
  check_device(first, first_argument);
  TORCH_CHECK_TYPE(tensor.defined(), ArgumentName{argument}, " must be a tensor, got an undefined one (None)");
  TORCH_CHECK_VALUE(
      tensor.device() == first.device(), ArgumentName{argument}, " must be on the device of ",
      ArgumentName{first_argument}, ", ", first.device(), ", got ", tensor.device(), "; move it with .to('",
      first.device(), "')");
}

namespace detail {

inline void check_dtype(
    const at::TensorBase& tensor, const char* argument, std::initializer_list<c10::ScalarType> accepted) {
  std::string names;
  for (const c10::ScalarType type : accepted) {
    if (type == tensor.scalar_type()) {
      return;
    }
    names += (names.empty() ? "" : ", ") + interop::detail::dtype_name(type);
  }
  TORCH_CHECK_TYPE(
      false, ArgumentName{argument}, " must have one of the dtypes ", names, ", got ",
      interop::detail::dtype_name(tensor.scalar_type()), "; convert it with .to(",
      interop::detail::dtype_name(*accepted.begin()), ")");
}

}  // namespace detail

// Raises unless the tensor has a floating-point dtype that CUDA computes with.
inline void check_floating(const at::TensorBase& tensor, const char* argument) {
  detail::check_dtype(tensor, argument, {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16});
}

// check_data() for a tensor in the memory of a CUDA device.
inline void check_data(const at::TensorBase& tensor, const char* argument) {
  check_device(tensor, argument);
  interop::check_data(tensor, argument, Copes::with_any_device);
}

}  // namespace interop::cuda
