// The CUDA kernels of the LLTM cell, as functions that Cython calls. Each launches one kernel and returns its
// cudaError_t, or interop::cuda::unsupported_dtype. `dtype`, a c10::ScalarType, is that of all pointers. No type of
// torch is here.
#pragma once

#include <cstdint>

// Rows that may lie anywhere in memory; strides in elements.
struct Rows {
  const void* data;
  int64_t row_stride;
  int64_t column_stride;
};

extern "C" {

// joined (batch, state + features) = [h, x].
int lltm_join(int8_t dtype, int64_t batch, int64_t state, int64_t features, Rows h, Rows x, void* joined, void* stream);

// gates (batch, 3 state) holds what the product gave, and then i, o and z. new_h, new_c (batch, state).
int lltm_forward(
    int8_t dtype, int64_t batch, int64_t state, void* gates, Rows c, void* new_h, void* new_c, void* stream);

// From gradients of new_h and new_c, the gates and new_c to those of the gates, before their activations, and of c.
int lltm_backward(
    int8_t dtype,
    int64_t batch,
    int64_t state,
    Rows grad_h,
    Rows grad_c,
    Rows gates,
    Rows new_c,
    void* d_gates,
    void* d_c,
    void* stream);

// sums (columns) of the rows of `matrix`, which lie next to one another. For few rows: each column is one thread's.
int lltm_sum(int8_t dtype, int64_t rows, int64_t columns, const void* matrix, void* sums, void* stream);
}
