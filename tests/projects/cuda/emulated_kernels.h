#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// `wide` takes the way for offsets that need 64 bits.
at::Tensor emulated_swish(const at::Tensor& x, double beta, bool wide);
at::Tensor emulated_hypotenuse(const at::Tensor& x, const at::Tensor& y, bool wide);
at::Tensor emulated_multiply_add(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z, bool wide);
at::Tensor emulated_hypotenuse_into(const at::Tensor& out, const at::Tensor& x, const at::Tensor& y);
// What the launcher returns where there are 0 or 2 inputs.
int emulated_swish_of(const at::Tensor& x, int64_t inputs);
// By the multiplication that kernels divide with.
int64_t quotient(int64_t dividend, int64_t divisor);
