// DLPack's managed tensors: made of tensors, and taken over as tensors.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/util/FunctionRef.h>

#include "interop/bridges.h"

namespace interop::bridges {

// The names of capsules, and what there is in one kind only. A capsule that was consumed has the second name.
template <class Managed>
struct Kind;
template <>
struct Kind<DLManagedTensor> {
  static constexpr const char* name = "dltensor";
  static constexpr const char* used = "used_dltensor";
  static constexpr bool versioned = false;
};
template <>
struct Kind<DLManagedTensorVersioned> {
  static constexpr const char* name = "dltensor_versioned";
  static constexpr const char* used = "used_dltensor_versioned";
  static constexpr bool versioned = true;
};

// Owns the tensor's memory, which is pinned for good, and not the tensor. Raises BufferError for what cannot be
// exported; what is read-only has no legacy form. With the GIL; its deleter needs none.
template <class Managed>
Managed* managed_of_tensor(const at::Tensor& tensor, bool read_only, bool copied);

// Takes over a managed tensor, if it is right, after `take` has been called, which may throw too. Else it is left
// alone. What is returned is a copy, or on another device, only if that was asked for. With the GIL.
at::Tensor tensor_of_managed(DLManagedTensor* managed, const DlpackImport& wanted, c10::function_ref<void()> take);
at::Tensor tensor_of_managed(
    DLManagedTensorVersioned* managed, const DlpackImport& wanted, c10::function_ref<void()> take);

// Raises ValueError for memory on `device` that cannot be taken as it is wanted: it is read-only, or a copy.
void check_wanted(const DlpackImport& wanted, const c10::Device& device, bool read_only, bool copied);

// A tensor that was taken over: on the device that is wanted, and copied if that is wanted.
at::Tensor as_wanted(at::Tensor tensor, const DlpackImport& wanted);

// The device that DLPack means. Raises BufferError if this torch has none such.
c10::Device torch_device(
    const DLDevice& device,
    const char* argument = "obj",
    const char* instead = "bring it to the CPU first, or pass device='cpu'");

}  // namespace interop::bridges
