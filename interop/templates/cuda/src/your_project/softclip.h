// The launcher, for both compilers.
#pragma once
#include "interop/cuda/host_device.h"

// Queues the kernel on `stream`; returns CUDA's error code.
int softclip_kernel(const interop::cuda::ElementwiseArguments& arguments, double limit, void* stream);
