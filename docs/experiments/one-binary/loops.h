// The loops of kernels.pyx in C++, for kernels_pybind11.cpp and kernels_torch_ops.cpp.
#pragma once

#include <cmath>
#include <cstdint>

namespace loops {

// Whether they begin with 0, end with the number of rows, and do not fall.
inline bool are_offsets(const int64_t* offsets, int64_t segments, int64_t rows) {
  for (int64_t k = 0; k < segments; ++k) {
    if (offsets[k] > offsets[k + 1]) {
      return false;
    }
  }
  return segments >= 0 && offsets[0] == 0 && offsets[segments] == rows;
}

inline void sum_segments(const float* values, const int64_t* offsets, int64_t segments, int64_t width, float* sums) {
  for (int64_t segment = 0; segment < segments; ++segment) {
    for (int64_t column = 0; column < width; ++column) {
      sums[segment * width + column] = 0;
    }
    for (int64_t row = offsets[segment]; row < offsets[segment + 1]; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        sums[segment * width + column] += values[row * width + column];
      }
    }
  }
}

inline float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}

inline void forward_rows(
    int64_t batch, int64_t state, const float* gates, const float* c, float* activated, float* new_h, float* new_c) {
  for (int64_t row = 0; row < batch; ++row) {
    for (int64_t k = 0; k < state; ++k) {
      const float i = sigmoid(gates[k]);
      const float o = sigmoid(gates[state + k]);
      float z = gates[2 * state + k];
      z = z > 0 ? z : expm1f(z);
      const float s = c[k] + z * i;
      activated[k] = i;
      activated[state + k] = o;
      activated[2 * state + k] = z;
      new_c[k] = s;
      new_h[k] = tanhf(s) * o;
    }
    gates += 3 * state;
    activated += 3 * state;
    c += state;
    new_h += state;
    new_c += state;
  }
}

inline void backward_rows(
    int64_t batch,
    int64_t state,
    const float* grad_h,
    const float* grad_c,
    const float* activated,
    const float* new_c,
    float* d_gates,
    float* d_c) {
  for (int64_t row = 0; row < batch; ++row) {
    for (int64_t k = 0; k < state; ++k) {
      const float i = activated[k];
      const float o = activated[state + k];
      const float z = activated[2 * state + k];
      const float t = tanhf(new_c[k]);
      const float d = grad_c[k] + grad_h[k] * o * (1 - t * t);
      d_gates[k] = d * z * (1 - i) * i;
      d_gates[state + k] = grad_h[k] * t * (1 - o) * o;
      d_gates[2 * state + k] = d * i * (z > 0 ? 1 : z + 1);
      d_c[k] = d;
    }
    activated += 3 * state;
    d_gates += 3 * state;
    grad_h += state;
    grad_c += state;
    new_c += state;
    d_c += state;
  }
}

}  // namespace loops
