// Element types in kernels: the types to compute with, type lists, dispatch at run time, and vectors.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "interop/cuda/launch.cuh"

namespace interop::cuda {

// T's number in c10::ScalarType. The numbers never change, because saved tensors contain them.
template <class T>
inline constexpr int8_t dtype_of = -1;
template <>
inline constexpr int8_t dtype_of<uint8_t> = 0;
template <>
inline constexpr int8_t dtype_of<int8_t> = 1;
template <>
inline constexpr int8_t dtype_of<int16_t> = 2;
template <>
inline constexpr int8_t dtype_of<int32_t> = 3;
template <>
inline constexpr int8_t dtype_of<int64_t> = 4;
template <>
inline constexpr int8_t dtype_of<__half> = 5;
template <>
inline constexpr int8_t dtype_of<float> = 6;
template <>
inline constexpr int8_t dtype_of<double> = 7;
template <>
inline constexpr int8_t dtype_of<__nv_bfloat16> = 15;

template <class... T>
struct Types {};

using Floating = Types<float, double, __half, __nv_bfloat16>;
using AllTypes = Types<float, double, __half, __nv_bfloat16, uint8_t, int8_t, int16_t, int32_t, int64_t>;

// Calls `function.template operator()<T>()` for the T of number `dtype`. Returns its error, or unsupported_dtype.
template <class... T, class F>
int dispatch(Types<T...>, int8_t dtype, F&& function) {
  int error = unsupported_dtype;
  (void)((dtype == dtype_of<T> ? (error = function.template operator()<T>(), true) : false) || ...);
  return error;
}

// The type to compute with: float for the two 16-bit types.
template <class T>
using compute_t =
    std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, float, std::remove_const_t<T>>;

template <class T>
__host__ __device__ compute_t<T> widen(T value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __half2float(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat162float(value);
  } else {
    return value;
  }
}

// Rounds to nearest. (With torch's build flags, a cast to __half does not compile.)
template <class T>
__host__ __device__ T narrow(compute_t<T> value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

// `width` adjacent elements, read and written by one instruction of up to 16 bytes.
template <class T, int width>
struct alignas(sizeof(T) * width) Vector {
  T values[width];

  __device__ static Vector load(const T* from) {
    return *reinterpret_cast<const Vector*>(from);
  }
  __device__ void store(T* to) const {
#ifdef __CUDA_ARCH__
    // Up to sm_90, nvcc splits a plain assignment of computed values into stores of 2 or 4 bytes.
    if constexpr (sizeof(Vector) == sizeof(uint4)) {
      uint4 bits;
      memcpy(&bits, values, sizeof(bits));
      __stwb(reinterpret_cast<uint4*>(to), bits);
      return;
    }
#endif
    *reinterpret_cast<Vector*>(to) = *this;
  }
};

// Elements of T's widest vector.
template <class T>
constexpr int vector_width = 16 / sizeof(T);

// Whether all these pointers are aligned for vectors.
template <class... Pointers>
bool aligned(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace interop::cuda
