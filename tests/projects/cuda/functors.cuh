// Functors for single values, compiled by nvcc for the operators of cuda_operators.pyx and by g++ for emulated.pyx.
#pragma once

#include "interop/cuda/elementwise.cuh"

struct Swish {
  double beta;

  template <class T>
  __host__ __device__ T operator()(T x) const {
    return x / (T(1) + exp(T(-beta) * x));
  }
};

struct Hypotenuse {
  template <class T>
  __host__ __device__ T operator()(T x, T y) const {
    return sqrt(x * x + y * y);
  }
};

struct MultiplyAdd {
  template <class T>
  __host__ __device__ T operator()(T x, T y, T z) const {
    return x * y + z;
  }
};
