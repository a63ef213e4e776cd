// Makes an elementwise kernel from a functor for single values:
//
//   struct Swish {
//     float beta;
//     template <class T> __device__ T operator()(T x) const { return x / (1 + exp(-T(beta) * x)); }
//   };
//   extern "C" int swish(const interop::cuda::ElementwiseArguments& arguments, float beta, void* stream) {
//     return interop::cuda::elementwise(interop::cuda::Floating(), arguments, Swish{beta}, stream);
//   }
//
// The functor takes a value of each input and returns the value of the output. It gets float16 and bfloat16 as float.
// The host side, interop/cuda/elementwise.h, broadcasts, promotes and allocates.
#pragma once

#include <type_traits>
#include <utility>

#include "interop/cuda/divide.cuh"
#include "interop/cuda/host_device.h"
#include "interop/cuda/types.cuh"

namespace interop::cuda {

namespace detail {

// The offset of an element in each operand, from the element's number.
template <class Index, class Divider, int operands>
struct Offsets {
  int dims;
  Divider sizes[ElementwiseArguments::max_dims];
  Index strides[operands][ElementwiseArguments::max_dims];

  explicit Offsets(const ElementwiseArguments& from) : dims(from.dims) {
    for (int d = 0; d < ElementwiseArguments::max_dims; ++d) {
      sizes[d] = Divider::of(d < dims ? static_cast<Index>(from.sizes[d]) : 1);
      for (int i = 0; i < operands; ++i) {
        strides[i][d] = d < dims ? static_cast<Index>(from.strides[i][d]) : 0;
      }
    }
  }

  __device__ void find(Index element, Index (&offsets)[operands]) const {
    for (int i = 0; i < operands; ++i) {
      offsets[i] = 0;
    }
#pragma unroll
    for (int d = 0; d < ElementwiseArguments::max_dims; ++d) {
      if (d == dims) {
        break;
      }
      const Index rest = sizes[d].quotient(element), here = element - rest * static_cast<Index>(sizes[d].value);
      element = rest;
      for (int i = 0; i < operands; ++i) {
        offsets[i] += here * strides[i][d];
      }
    }
  }
};

template <class T, int inputs>
struct Pointers {
  T* output;
  const T* input[inputs];
};

template <class T, class F, int inputs, size_t... I>
__device__ T apply(const F& function, const T (&values)[inputs], std::index_sequence<I...>) {
  return narrow<T>(function(widen(values[I])...));
}

template <class T, class F, int inputs>
__global__ void __launch_bounds__(threads_per_block)
    elementwise_contiguous(Pointers<T, inputs> data, int64_t count, F function) {
  constexpr int width = vector_width<T>;
  const int64_t start = first_element(width);
  if (start + width <= count) {
    Vector<T, width> in[inputs], out;
#pragma unroll
    for (int i = 0; i < inputs; ++i) {
      in[i] = Vector<T, width>::load(data.input[i] + start);
    }
#pragma unroll
    for (int k = 0; k < width; ++k) {
      T values[inputs];
      for (int i = 0; i < inputs; ++i) {
        values[i] = in[i].values[k];
      }
      out.values[k] = apply(function, values, std::make_index_sequence<inputs>());
    }
    out.store(data.output + start);
    return;
  }
  for (int64_t k = start; k < count; ++k) {
    T values[inputs];
    for (int i = 0; i < inputs; ++i) {
      values[i] = data.input[i][k];
    }
    data.output[k] = apply(function, values, std::make_index_sequence<inputs>());
  }
}

template <class T, class F, int inputs, class Index, class Divider>
__global__ void __launch_bounds__(threads_per_block) elementwise_strided(
    Pointers<T, inputs> data, Index count, Offsets<Index, Divider, inputs + 1> offsets, F function) {
  const int64_t element = first_element(1);
  if (element >= static_cast<int64_t>(count)) {
    return;
  }
  Index at[inputs + 1];
  offsets.find(static_cast<Index>(element), at);
  T values[inputs];
  for (int i = 0; i < inputs; ++i) {
    values[i] = data.input[i][at[i + 1]];
  }
  data.output[at[0]] = apply(function, values, std::make_index_sequence<inputs>());
}

template <class T, int inputs, class F>
int elementwise(const ElementwiseArguments& arguments, const F& function, void* stream) {
  if (arguments.count == 0) {
    return cudaSuccess;  // there is no Divisor of size 0
  }
  Pointers<T, inputs> data;
  bool vectors = arguments.contiguous && aligned(arguments.data[0]);
  data.output = static_cast<T*>(arguments.data[0]);
  for (int i = 0; i < inputs; ++i) {
    data.input[i] = static_cast<const T*>(arguments.data[i + 1]);
    vectors = vectors && aligned(arguments.data[i + 1]);
  }
  const int64_t count = arguments.count;
  if (vectors) {
    const int64_t blocks = parts(count, threads_per_block * vector_width<T>);
    return launch(elementwise_contiguous<T, F, inputs>, blocks, threads_per_block, stream, data, count, function);
  }
  const int64_t blocks = parts(count, threads_per_block);
  const auto strided = [&]<class Index, class Divider>(std::type_identity<Index>, std::type_identity<Divider>) {
    const Offsets<Index, Divider, inputs + 1> offsets(arguments);
    return launch(
        elementwise_strided<T, F, inputs, Index, Divider>, blocks, threads_per_block, stream, data,
        static_cast<Index>(count), offsets, function);
  };
  return arguments.fits_32_bit ? strided(std::type_identity<uint32_t>(), std::type_identity<Divisor>())
                               : strided(std::type_identity<int64_t>(), std::type_identity<WideDivisor>());
}

// The number of values that a functor takes: the fewest that it can be called with.
template <class F, class T, int inputs = 1>
constexpr int arity() {
  static_assert(
      inputs < ElementwiseArguments::max_operands,
      "the functor cannot be called with one to five values of the type that is computed with; it needs "
      "template <class T> __device__ T operator()(T, ...) const");
  const auto takes = []<size_t... I>(std::index_sequence<I...>) {
    return std::is_invocable_v<const F&, decltype((void)I, std::declval<compute_t<T>>())...>;
  };
  if constexpr (takes(std::make_index_sequence<inputs>())) {
    return inputs;
  } else {
    return arity<F, T, inputs + 1>();
  }
}

}  // namespace detail

// Launches the functor on all elements if the dtype is one of `types`. Returns the error for Launch::check().
template <class... T, class F>
int elementwise(Types<T...> types, const ElementwiseArguments& arguments, const F& function, void* stream) {
  if (arguments.operands == 0) {
    return no_operands;
  }
  return dispatch(types, arguments.dtype, [&]<class Chosen>() -> int {
    constexpr int inputs = detail::arity<F, Chosen>();
    if (arguments.operands != inputs + 1) {
      return wrong_number_of_inputs;
    }
    return detail::elementwise<Chosen, inputs>(arguments, function, stream);
  });
}

}  // namespace interop::cuda
