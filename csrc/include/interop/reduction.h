// Makes a reduction of a tensor from one scalar function, written in Cython, that folds a value into a total.
#pragma once

#include <c10/core/WrapDimMinimal.h>

#include <bitset>
#include <vector>

#include "interop/convert.h"
#include "interop/elementwise.h"

namespace interop {

namespace detail {

// Folds the input into the output. If the output is one element, independent lanes do not wait for one another; they
// are folded at the end.
template <auto function, class T = typename Signature<decltype(function)>::Element>
struct Fold {
  static constexpr int64_t lanes = 64 / sizeof(T) < 8 ? 8 : 64 / sizeof(T);

  [[gnu::flatten]] static void loop(char** data, const int64_t* strides, int64_t n, int64_t m, T identity) {
    for (int64_t j = 0; j < m; ++j) {
      char* out = data[0] + j * strides[2];
      char* in = data[1] + j * strides[3];
      if (strides[0] != 0) {
        for (int64_t i = 0; i < n; ++i) {
          T& total = at_byte<T>(out, i * strides[0]);
          total = function(total, load<T, T>(at_byte<const T>(in, i * strides[1])));
        }
        continue;
      }
      T lane[lanes];
      std::fill(lane, lane + lanes, identity);
      int64_t i = 0;
      if (strides[1] == sizeof(T)) {
        const T* packed = reinterpret_cast<const T*>(in);
        for (; i + lanes <= n; i += lanes) {
#pragma omp simd
          for (int64_t k = 0; k < lanes; ++k) {
            lane[k] = function(lane[k], load<T, T>(packed[i + k]));
          }
        }
      }
      T total = load<T, T>(at_byte<const T>(out, 0));
      for (int64_t k = 0; i > 0 && k < lanes; ++k) {
        total = function(total, lane[k]);
      }
      for (; i < n; ++i) {
        total = function(total, load<T, T>(at_byte<const T>(in, i * strides[1])));
      }
      at_byte<T>(out, 0) = total;
    }
  }
};

template <auto function>
bool fold_if(c10::ScalarType computed, at::TensorIterator& iterator, const c10::Scalar& identity) {
  using S = Signature<decltype(function)>;
  if (S::dtype != computed) {
    return false;
  }
  const auto start = static_cast<typename S::Element>(identity.to<c10::impl::ScalarTypeToCPPTypeT<S::dtype>>());
  const NoGil no_gil;
  const auto loop = [=](char** data, const int64_t* strides, int64_t n, int64_t m) {
    call_cython(&Fold<function>::loop, data, strides, n, m, start);
  };
  const LoopBody body(loop, at::in_parallel_region);
  iterator.parallel_reduce(body);
  return true;
}

// The dimensions to reduce: all without `dims`, and none with an empty list. at::any() does the same; at::sum() reduces
// all. torch's own function is in ATen/WrapDimUtilsMulti.h, which includes all of IValue: 3 s of g++.
inline std::bitset<64> dimensions_of(at::OptionalIntArrayRef dims, int64_t dim) {
  std::bitset<64> reduced;
  TORCH_CHECK(dim <= 64, "only tensors with up to 64 dims are supported");
  if (!dims) {
    return reduced.set();
  }
  for (const int64_t given : *dims) {
    const int64_t d = c10::maybe_wrap_dim(given, dim);
    TORCH_CHECK(!reduced[d], "dim ", d, " appears multiple times in the list of dims");
    reduced[d] = true;
  }
  return reduced;
}

// The result of a Meta kernel, without values.
inline at::Tensor reduced_meta(
    const at::Tensor& tensor, const std::bitset<64>& reduced, bool keepdim, c10::ScalarType dtype) {
  const at::AutoDispatchBelowADInplaceOrView below;
  std::vector<c10::SymInt> sizes;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (keepdim || !reduced[d]) {
      sizes.push_back(reduced[d] ? c10::SymInt(1) : tensor.sym_size(d));
    }
  }
  return at::_ops::empty_memory_format::call(sizes, dtype, at::kStrided, at::kMeta, std::nullopt, std::nullopt);
}

template <auto... functions>
at::Tensor reduce(
    const char* name,
    const at::Tensor& tensor,
    const c10::Scalar& identity,
    at::OptionalIntArrayRef dims,
    bool keepdim) {
  using Functions = ScalarFunctions<functions...>;
  static_assert(
      Functions::First::arguments == 2 && !Functions::First::is_predicate,
      "a reduction's function must be T f(T total, T value)");
  check_operand(Functions::describe(name), tensor, "input");
  const auto [result_dtype, computed] = Functions::describe(name).choose(tensor.scalar_type());
  const auto reduced = dimensions_of(dims, tensor.dim());
  if (is_meta(tensor)) [[unlikely]] {
    return reduced_meta(tensor, reduced, keepdim, result_dtype);
  }
  std::vector<int64_t> kept_sizes, sizes;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    kept_sizes.push_back(reduced[d] ? 1 : tensor.size(d));
    if (keepdim || !reduced[d]) {
      sizes.push_back(kept_sizes.back());
    }
  }
  const at::AutoDispatchBelowADInplaceOrView below;  // nothing here belongs to a graph
  const at::Tensor input = tensor.resolve_conj().resolve_neg().to(computed);
  at::Tensor result = at::_ops::full::call(
      c10::fromIntArrayRefSlow(kept_sizes), identity, computed, at::kStrided, at::kCPU, std::nullopt);
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).resize_outputs(false).is_reduction(true);
  config.add_owned_output(result).add_owned_const_input(input);
  at::TensorIterator iterator = config.build();
  if (iterator.numel() > 0) {
    (fold_if<functions>(computed, iterator, identity) || ...);
  }
  return result.view(sizes).to(result_dtype);
}

}  // namespace detail

// function(...function(function(identity, x0), x1)..., xn) over the dimensions `dims`, or over all, in any order and
// grouping. Half and BFloat16 become float first, unless a function takes them, and the result is converted back.
template <class Identity, class Dims, auto... functions>
at::Tensor reduce(
    const char* name,
    ScalarFunctions<functions...>,
    const at::Tensor& tensor,
    const Identity& identity,
    const Dims& dims,
    bool keepdim = false) {
  return detail::reduce<functions...>(
      name, tensor, as<at::Scalar>(identity, "reduce", "identity"), as<at::OptionalIntArrayRef>(dims, "reduce", "dims"),
      keepdim);
}

template <class Identity, auto... functions>
at::Tensor reduce(
    const char* name, ScalarFunctions<functions...> kernel, const at::Tensor& tensor, const Identity& identity) {
  return reduce(name, kernel, tensor, identity, std::nullopt);
}

}  // namespace interop
