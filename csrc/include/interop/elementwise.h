// Elementwise operations on tensors from scalar functions written in Cython, one function for each element type.
//
// The functions are template arguments, so the compiler inlines them into the loops of vectorised.h, which it
// vectorises for each usable instruction set. torch's iterator does the rest: broadcasting, promotion, threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/empty_like_ops.h>
#include <ATen/ops/empty_ops.h>
#include <ATen/ops/full_ops.h>
#include <ATen/ops/mul_ops.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <type_traits>

#include "interop/dispatch.h"
#include "interop/graph.h"
#include "interop/promotion.h"
#include "interop/tensor_iterator.h"
#include "interop/unwrap_reference.h"
#include "interop/vectorised.h"

// Exported by libtorch_cpu. Its header, ATen/ScalarOps.h, costs 3 s of g++.
namespace at::detail {
TORCH_API Tensor
scalar_tensor_static(const Scalar& s, std::optional<ScalarType> dtype_opt, std::optional<Device> device_opt);
}

namespace interop {

namespace detail {

template <class F>
struct Signature;

template <class R, class First, class... Rest>
struct Signature<R (*)(First, Rest...)> {
  static_assert((std::is_same_v<First, Rest> && ...), "the arguments of a kernel's function must have the same type");
  static_assert(std::is_same_v<R, First> || std::is_same_v<R, bool>, "it must return that type or a C++ bool");
  using Element = First;
  static constexpr size_t arguments = 1 + sizeof...(Rest);
  static constexpr bool is_predicate = std::is_same_v<R, bool> && !std::is_same_v<First, bool>;
  static constexpr c10::ScalarType dtype = scalar_type_of<First>();
};

// An operation's name, and the dtypes that its functions compute with.
struct Description {
  const char* name;
  const c10::ScalarType* dtypes;
  size_t count;
  bool is_predicate;

  bool has(c10::ScalarType dtype) const {
    return std::find(dtypes, dtypes + count, dtype) != dtypes + count;
  }

  // An operation that has only floating-point functions converts integers to floating point, as torch.sin() does.
  bool makes_floats() const {
    return std::all_of(
        dtypes, dtypes + count, [](c10::ScalarType t) { return c10::isFloatingType(t) || c10::isComplexType(t); });
  }

  // The iterator's common dtype, and the dtype to compute with.
  std::pair<c10::ScalarType, c10::ScalarType> choose(c10::ScalarType promoted) const {
    if (makes_floats() && c10::isIntegralType(promoted, true)) {
      promoted = c10::typeMetaToScalarType(c10::get_default_dtype());
    }
    const bool reduced = promoted == c10::ScalarType::Half || promoted == c10::ScalarType::BFloat16;
    const c10::ScalarType computed = reduced && !has(promoted) ? c10::ScalarType::Float : promoted;
    if (!has(computed)) {
      not_implemented(name, promoted, {dtypes, count});
    }
    return {promoted, computed};
  }
};

}  // namespace detail

// One scalar function for each element type to compute with.
template <auto... functions>
struct ScalarFunctions {
  static constexpr std::array<c10::ScalarType, sizeof...(functions)> dtypes{
      detail::Signature<decltype(functions)>::dtype...};
  using First = detail::Signature<std::tuple_element_t<0, std::tuple<decltype(functions)...>>>;
  static_assert(
      ((detail::Signature<decltype(functions)>::arguments == First::arguments) && ...) &&
          ((detail::Signature<decltype(functions)>::is_predicate == First::is_predicate) && ...),
      "the functions of a kernel must have the same number of arguments and the same kind of result");

  static detail::Description describe(const char* name) {
    return {name, dtypes.data(), dtypes.size(), First::is_predicate};
  }
};

namespace detail {

// A number promotes as in torch: its kind counts, not its size.
inline at::Tensor wrapped_number(const c10::Scalar& value) {
  at::Tensor tensor = at::detail::scalar_tensor_static(value, value.type(), at::kCPU);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

template <class A>
at::Tensor operand(const A& argument) {
  const auto& value = unwrap_reference(argument);
  using V = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::is_base_of_v<at::TensorBase, V>) {
    return at::Tensor(value);
  } else {
    static_assert(
        std::is_arithmetic_v<V> || std::is_same_v<V, c10::Scalar>,
        "an argument must be an at.Tensor or a number with a C type; for a torch.Tensor, pass .cdata");
    return wrapped_number(c10::Scalar(value));
  }
}

inline void check_operand(const Description& operation, const at::Tensor& tensor, const std::string& name) {
  if (!is_meta(tensor)) {
    check_not_traced(tensor, operation.name, name);
  }
  check_data(tensor, name.c_str(), Copes::with_conj | Copes::with_neg | Copes::with_meta);
  if (!operation.is_predicate) {  // a truth value has no gradient
    check_no_graph(tensor, operation.name, name);
  }
}

// How to compute one call of an operation.
struct Plan {
  c10::ScalarType common, computed;  // the dtype to promote the inputs to, and the dtype to compute with
  bool is_meta = false;              // there are no values: this is a Meta kernel
  bool is_symbolic = false;          // the sizes are not numbers

  Plan(const Description& operation, const at::Tensor* inputs, size_t count) {
    Promotion promotion;
    for (size_t i = 0; i < count; ++i) {
      check_operand(operation, inputs[i], "input " + std::to_string(i));
      promotion.add(inputs[i]);
      is_meta |= detail::is_meta(inputs[i]);
      is_symbolic |= inputs[i].unsafeGetTensorImpl()->has_symbolic_sizes_strides();
    }
    std::tie(common, computed) = operation.choose(promotion.dtype());
  }
};

inline at::TensorIterator make_iterator(
    const Description& operation, const Plan& plan, const at::Tensor& out, at::Tensor* inputs, size_t count) {
  const at::AutoDispatchBelowADInplaceOrView below;  // copies made here belong to no graph
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i].is_conj() || inputs[i].is_neg()) {
      inputs[i] = inputs[i].resolve_conj().resolve_neg();
    }
    // On the CPU the iterator converts its inputs, which may give them other strides, and with them the result.
    if (is_meta(inputs[i]) && inputs[i].scalar_type() != plan.common) {
      inputs[i] = inputs[i].to(plan.common);
    }
  }
  if (out.defined()) {
    check_data(out, "out", plan.is_meta ? Copes::with_meta : Copes::with_nothing);
    check_write(out, "out");
  }
  at::TensorIteratorConfig config;
  config.promote_inputs_to_common_dtype(true).promote_integer_inputs_to_float(operation.makes_floats());
  config.allow_cpu_scalars(plan.is_meta);
  if (operation.is_predicate) {
    config.declare_static_dtype(at::kBool);
  } else {
    config.cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true);
  }
  config.add_owned_output(out);
  for (size_t i = 0; i < count; ++i) {
    config.add_owned_const_input(inputs[i]);
  }
  return config.build();
}

// torch's iterator takes sizes as numbers only, but torch's operators take symbols. The results' values are not used.
inline at::Tensor symbolic_result(const Plan& plan, bool is_predicate, const at::Tensor* inputs, size_t count) {
  const at::AutoDispatchBelowADInplaceOrView below;
  at::Tensor result = at::_ops::mul_Scalar::call(inputs[0], 1);
  for (size_t i = 1; i < count; ++i) {
    result = at::_ops::add_Tensor::call(result, inputs[i], 1);
  }
  return at::_ops::empty_like::call(
      result, is_predicate ? at::kBool : plan.common, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

inline at::Tensor finish(at::TensorIterator& iterator, const at::Tensor& out) {
  const at::AutoDispatchBelowADInplaceOrView below;
  iterator.cast_outputs();
  return out.defined() ? out : iterator.output();
}

template <auto function, class Storage>
void run(at::TensorIterator& iterator) {
  const auto loop = vectorised<function, Storage>();
  const NoGil no_gil;
  const LoopBody body(
      [loop](char** data, const int64_t* strides, int64_t n, int64_t m) { call_cython(loop, data, strides, n, m); });
  iterator.for_each(body);
}

// Runs the function if it is for this dtype. Half and BFloat16 use the one for float.
template <auto function>
bool run_if(c10::ScalarType computed, at::TensorIterator& iterator) {
  using Element = typename Signature<decltype(function)>::Element;
  if (Signature<decltype(function)>::dtype != computed) {
    return false;
  }
  if constexpr (std::is_same_v<Element, float>) {
    const c10::ScalarType stored = iterator.input_dtype();
    if (stored == c10::ScalarType::Half) {
      run<function, c10::Half>(iterator);
      return true;
    }
    if (stored == c10::ScalarType::BFloat16) {
      run<function, c10::BFloat16>(iterator);
      return true;
    }
  }
  run<function, Element>(iterator);
  return true;
}

template <auto... functions, class... Arguments>
at::Tensor elementwise(const char* name, const at::Tensor& out, const Arguments&... arguments) {
  using Functions = ScalarFunctions<functions...>;
  static_assert(
      sizeof...(Arguments) == Functions::First::arguments,
      "a kernel must be called with as many arguments as its functions");
  std::array<at::Tensor, sizeof...(Arguments)> inputs{operand(arguments)...};
  const Description operation = Functions::describe(name);
  const Plan plan(operation, inputs.data(), inputs.size());
  if (plan.is_symbolic && !out.defined()) [[unlikely]] {
    return symbolic_result(plan, operation.is_predicate, inputs.data(), inputs.size());
  }
  at::TensorIterator iterator = make_iterator(operation, plan, out, inputs.data(), inputs.size());
  if (!plan.is_meta) {
    (run_if<functions>(plan.computed, iterator) || ...);
  }
  return finish(iterator, out);
}

}  // namespace detail

template <auto... functions, class... Arguments>
at::Tensor elementwise(const char* name, ScalarFunctions<functions...>, const Arguments&... arguments) {
  return detail::elementwise<functions...>(name, at::Tensor(), arguments...);
}

// Writes to `out`, which is resized if necessary, and returns it.
template <auto... functions, class... Arguments>
at::Tensor elementwise_out(
    const char* name, const at::Tensor& out, ScalarFunctions<functions...> kernel, const Arguments&... arguments) {
  TORCH_CHECK_TYPE(out.defined(), "argument 'out' must be a tensor, got an undefined one (None)");
  using First = typename ScalarFunctions<functions...>::First;
  if (First::is_predicate && out.scalar_type() != at::kBool) {
    const at::Tensor result = elementwise(name, kernel, arguments...);
    check_data(out, "out", result.is_meta() ? Copes::with_meta : Copes::with_nothing);
    check_write(out, "out");
    const at::AutoDispatchBelowADInplaceOrView below;
    out.resize_(result.sizes());
    return out.copy_(result), out;
  }
  return detail::elementwise<functions...>(name, out, arguments...);
}

// The gradient of an input: summed over the dimensions that were broadcast, with the input's dtype.
inline at::Tensor unbroadcast(const at::Tensor& gradient, const at::Tensor& input) {
  return gradient.sum_to_size_symint(input.sym_sizes()).to(input.scalar_type());
}

}  // namespace interop

// A macro, because a C++ template sees only the type of a function that Cython passes to it. Here, Cython writes the
// name of the specialisation for `f[float]`.
#define INTEROP_KERNEL(...) (::interop::ScalarFunctions<__VA_ARGS__>{})
