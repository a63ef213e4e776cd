// The host side of an elementwise CUDA kernel: broadcasting, promotion, the output, and the kernel's arguments. Needs
// no CUDA header.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/empty_like_ops.h>
#include <ATen/ops/full_ops.h>
#include <ATen/ops/result_type_ops.h>
#include <c10/core/DefaultDtype.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interop/cuda/check.h"
#include "interop/cuda/host_device.h"
#include "interop/graph.h"

namespace interop::cuda {

namespace detail {

// A CPU tensor without dimensions, which counts as a number.
inline bool is_cpu_scalar(const at::Tensor& input) {
  return input.defined() && input.is_cpu() && input.dim() == 0;
}

// The index of the first input that is not a number; 0 if all are numbers.
template <size_t count>
size_t find_reference(const std::array<at::Tensor, count>& inputs) {
  for (size_t i = 0; i < count; ++i) {
    if (!is_cpu_scalar(inputs[i])) {
      return i;
    }
  }
  return 0;
}

// Checks all devices before any memory: fake tensors have a device, but no memory. Meta tensors need no check,
// because they have an output, too.
template <size_t count>
void check_places(const std::array<at::Tensor, count>& inputs) {
  std::array<std::string, count> names;
  for (size_t i = 0; i < count; ++i) {
    names[i] = "input " + std::to_string(i);
  }
  const size_t reference = find_reference(inputs);
  if (inputs[reference].defined() && inputs[reference].is_meta()) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (i == reference || !is_cpu_scalar(inputs[i])) {
      check_same_device(inputs[i], names[i].c_str(), inputs[reference], names[reference].c_str());
    }
  }
  for (size_t i = 0; i < count; ++i) {
    check_no_graph(inputs[i], "Elementwise", names[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    const Copes device = is_cpu_scalar(inputs[i]) ? Copes::with_nothing : Copes::with_any_device;
    interop::check_data(inputs[i], names[i].c_str(), device | Copes::with_conj | Copes::with_neg);
  }
}

// How integers and booleans are promoted.
enum class Integers { to_floating, as_they_are };

// Converts the inputs to one dtype on one device, without a pending conjugation, as a kernel takes them.
template <size_t count>
void unify(std::array<at::Tensor, count>& inputs, Integers integers) {
  at::native::ResultTypeState state;
  for (const at::Tensor& input : inputs) {
    state = at::native::update_result_type_state(input, state);
  }
  c10::ScalarType common = at::native::result_type(state);
  if (integers == Integers::to_floating && c10::isIntegralType(common, true)) {
    common = c10::typeMetaToScalarType(c10::get_default_dtype());
  }
  const c10::Device device = inputs[find_reference(inputs)].device();
  for (at::Tensor& input : inputs) {
    if (is_cpu_scalar(input) && !device.is_cpu()) {
      // The device fills it in: a copy would synchronize.
      input = at::_ops::full::call({}, input.item(), common, at::kStrided, device, false);
    } else if (input.scalar_type() != common) {
      input = input.to(common);
    }
    input = input.resolve_conj().resolve_neg();
  }
}

// An output for sizes that are symbols, in a Meta kernel: torch's iterator takes only numbers, and its operators take
// both. Undefined if all sizes are numbers.
template <size_t count>
at::Tensor symbolic_output(const std::array<at::Tensor, count>& inputs) {
  bool is_symbolic = false;
  for (const at::Tensor& input : inputs) {
    is_symbolic |= input.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  }
  if (!is_symbolic) {
    return at::Tensor();
  }
  at::Tensor result = at::_ops::add_Tensor::call(inputs[0], inputs[0], 1);
  for (size_t i = 1; i < count; ++i) {
    result = at::_ops::add_Tensor::call(result, inputs[i], 1);
  }
  return at::_ops::empty_like::call(result, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

inline ElementwiseArguments describe(const at::TensorIteratorBase& iterator) {
  TORCH_CHECK_VALUE(
      iterator.ndim() <= ElementwiseArguments::max_dims, "an elementwise CUDA kernel takes up to ",
      ElementwiseArguments::max_dims, " dimensions that cannot be joined, got ", iterator.ndim(),
      "; copy the inputs with .contiguous()");
  ElementwiseArguments result{};
  result.count = iterator.numel();
  result.operands = iterator.ntensors();
  result.dims = iterator.ndim();
  result.dtype = static_cast<int8_t>(iterator.common_dtype());
  result.contiguous = iterator.is_contiguous();
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  result.fits_32_bit = result.count <= limit;
  for (int d = 0; d < result.dims; ++d) {
    result.sizes[d] = iterator.shape()[d];
  }
  for (int i = 0; i < result.operands; ++i) {
    const auto size = static_cast<int64_t>(iterator.element_size(i));
    int64_t last = 0;
    for (int d = 0; d < result.dims; ++d) {
      result.strides[i][d] = iterator.strides(i)[d] / size;
      last += (result.sizes[d] - 1) * result.strides[i][d];
    }
    result.fits_32_bit = result.fits_32_bit && last <= limit;
    result.data[i] = iterator.tensor_base(i).is_meta() ? nullptr : iterator.data_ptr(i);
  }
  return result;
}

}  // namespace detail

// An elementwise operation about to be launched. It owns its operands, and converts to the arguments of a launcher.
class Elementwise {
 public:
  Elementwise() = default;

  // Broadcasts the inputs, promotes them as torch does (integers to the default dtype), and allocates the output.
  template <class... Tensors>
  explicit Elementwise(const at::Tensor& first, const Tensors&... rest) {
    prepare(at::Tensor(), RequiredDevice::cuda, Integers::to_floating, first, rest...);
  }

  // The same, but writes to `output`, which must have the dtype and the sizes of the result.
  template <class... Tensors>
  static Elementwise into(const at::Tensor& output, const Tensors&... inputs) {
    check_data(output, "out");
    return prepared(output, RequiredDevice::cuda, Integers::to_floating, inputs...);
  }

  // The same, for a functor that takes integers as they are.
  template <class... Tensors>
  static Elementwise with_integers(const Tensors&... inputs) {
    return prepared(at::Tensor(), RequiredDevice::cuda, Integers::as_they_are, inputs...);
  }

  const at::Tensor& output() const {
    TORCH_CHECK_VALUE(
        output_.defined(), "an Elementwise must be assigned before its output is taken: e = Elementwise(x)");
    return output_;
  }

  // A default-constructed object has 0 operands, which the launcher reports. This must not throw, because Cython
  // catches nothing here.
  // NOLINTNEXTLINE(google-explicit-constructor): what a launcher takes
  operator const ElementwiseArguments&() const noexcept {
    return arguments_;
  }

  enum class RequiredDevice { cuda, any };  // any: for tests, which run kernels on the host
  using Integers = detail::Integers;

  template <class... Tensors>
  static Elementwise prepared(
      const at::Tensor& output, RequiredDevice required, Integers integers, const Tensors&... inputs) {
    Elementwise result;
    result.prepare(output, required, integers, inputs...);
    return result;
  }

 private:
  template <class... Tensors>
  void prepare(const at::Tensor& output, RequiredDevice required, Integers integers, const Tensors&... inputs) {
    const bool on_cuda = required == RequiredDevice::cuda;
    constexpr size_t count = sizeof...(Tensors);
    static_assert(count >= 1 && count < ElementwiseArguments::max_operands, "an Elementwise takes one to five inputs");
    const at::AutoDispatchBelowADInplaceOrView below;  // copies made here belong to no graph
    inputs_.reserve(count);
    std::array<at::Tensor, count> operands{at::Tensor(inputs)...};
    if (on_cuda) {
      detail::check_places(operands);
    }
    detail::unify(operands, integers);
    if (!output.defined()) {
      output_ = detail::symbolic_output(operands);
      if (output_.defined()) {
        return;
      }
    }
    const c10::ScalarType dtype = operands[0].scalar_type();
    at::TensorIteratorConfig config;
    config.set_check_mem_overlap(true).check_all_same_dtype(true).resize_outputs(false);
    if (output.defined()) {
      if (on_cuda) {
        check_same_device(output, "out", operands[detail::find_reference(operands)], "its inputs");
      }
      check_dtype(output, "out", dtype);
      config.add_output(output);
    } else {
      config.add_owned_output(at::Tensor());
    }
    for (at::Tensor& operand : operands) {
      inputs_.push_back(operand);
      config.add_owned_const_input(std::move(operand));
    }
    at::TensorIterator iterator = config.build();
    output_ = iterator.output();
    if (output.defined()) {
      check_write(output_, "out");
    }
    arguments_ = detail::describe(iterator);
  }

  at::Tensor output_;
  std::vector<at::Tensor> inputs_;  // owned: the caller may drop its own before the kernel reads them
  ElementwiseArguments arguments_{};
};

}  // namespace interop::cuda
