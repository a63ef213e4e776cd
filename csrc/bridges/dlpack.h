// Tensors by DLPack, from Python objects and for them.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/util/FunctionRef.h>

#include "interop/bridges.h"

namespace interop::bridges {

// The tensor of a capsule, of a torch.Tensor, or of an object that has a C exchange API or the method __dlpack__.
at::Tensor tensor_of_dlpack(PyObject* object, const DlpackImport& wanted);

// A capsule, a new reference.
PyObject* capsule_of_tensor(const at::Tensor& tensor, const DlpackExport& wanted);

// Takes over `managed`, and calls its deleter itself if that fails. `before` is called when it is certain that nothing
// is wrong with it.
at::Tensor take_managed(
    DLManagedTensorVersioned* managed, const DlpackImport& wanted, c10::function_ref<void()> before = [] {});

int ready_dlpack() noexcept;

// See dlpack_exchange.cpp.
const DLPackExchangeAPI* checked_exchange_api() noexcept;

}  // namespace interop::bridges
