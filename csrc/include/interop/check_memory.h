// The single place that decides whether code may access a tensor's memory, and explains why not.
//
// A tensor is more than its bytes: its conjugation may be pending, it may be on another device, it may be a wrapper
// without memory, or it may have lost its memory. Call check_data() before reading a data pointer, and check_write()
// as well before writing through one.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <complex>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

#include "interop/gil.h"
#include "interop/owned_ref.h"
#include "interop/scalar_type_of.h"

// Exported by libtorch_python.
PyObject* THPVariable_Wrap(const at::TensorBase& var);

namespace interop {

// An argument as messages print it: argument 'x'.
struct ArgumentName {
  const char* name;
};

inline std::ostream& operator<<(std::ostream& out, const ArgumentName& argument) {
  return out << "argument '" << argument.name << "'";
}

// Properties of a tensor that the caller of check_data() handles itself, so that check_data() accepts them. It raises
// for all others.
enum class Copes : unsigned {
  with_nothing = 0,
  with_conj = 1U << 0,        // the bytes are the conjugate of the values
  with_neg = 1U << 1,         // the bytes are the negative of the values
  with_any_device = 1U << 2,  // the CPU does not use the pointer
  with_meta = 1U << 3,        // there is no memory, and the caller only uses sizes, strides and dtype
};

constexpr Copes operator|(Copes a, Copes b) noexcept {
  return static_cast<Copes>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

namespace detail {

constexpr bool copes(Copes all, Copes one) noexcept {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

// The name in Python, such as torch.float32.
inline std::string dtype_name(c10::ScalarType type) {
  return "torch." + std::string(c10::getDtypeNames(type).first);
}

// The name of a tensor's Python class, for messages. Takes the GIL.
inline std::string class_name(const at::TensorBase& tensor) {
  const Gil gil;
  const OwnedRef object(THPVariable_Wrap(tensor));
  if (!object) {
    PyErr_Clear();
    return "a tensor subclass";
  }
  return Py_TYPE(object.get())->tp_name;
}

// Whether the tensor is a meta tensor, which has only sizes, strides and dtype. A fake tensor of torch.compile counts
// only in a Meta kernel: there the dispatch key Python is excluded, and the tensor is on the meta device.
inline bool is_meta(const at::TensorBase& tensor) {
  const bool in_python = tensor.key_set().has(c10::DispatchKey::Python) &&
                         !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python);
  return tensor.defined() && !in_python && tensor.is_meta();
}

// Bytes from the start of the storage to the end of the last element.
inline size_t bytes_reached(const at::TensorBase& tensor) {
  int64_t last = tensor.storage_offset();
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return static_cast<size_t>(last + 1) * tensor.itemsize();
}

}  // namespace detail

// Raises if torch.compile or torch.export is tracing, so that the tensor is a stand-in without values.
inline void check_not_traced(const at::TensorBase& tensor, const char* operation, const std::string& input) {
  const c10::DispatchKeySet keys = tensor.key_set();
  if (keys.has(c10::DispatchKey::Python) || keys.has(c10::DispatchKey::Functionalize)) [[unlikely]] {
    const std::string name =
        keys.has(c10::DispatchKey::Functionalize) ? "FunctionalTensor" : detail::class_name(tensor);
    TORCH_CHECK_TYPE(
        name != "FakeTensor" && name != "FunctionalTensor", operation, ": ", input, " is a ", name,
        ", which has no values: torch.compile or torch.export is tracing here. Make this an operator with kernels for "
        "CPU and Meta (define and impl of torch.library), and call that with Operator; a Meta kernel makes only its "
        "result, as with at.empty_symint");
  }
}

// Raises unless the tensor has memory, laid out by sizes and strides, that holds its values.
inline void check_data(const at::TensorBase& tensor, const char* argument, Copes copes = Copes::with_nothing) {
  const ArgumentName name{argument};
  TORCH_CHECK_TYPE(tensor.defined(), name, " must be a tensor, got an undefined one (None)");
  if (detail::copes(copes, Copes::with_meta) && detail::is_meta(tensor)) {
    return;
  }
  const c10::DispatchKeySet keys = tensor.key_set();
  TORCH_CHECK_TYPE(
      !keys.has(c10::DispatchKey::Python), name, " must be a tensor with memory of its own, got ",
      detail::class_name(tensor),
      ", which implements its operations in Python (__torch_dispatch__); pass the tensor that it wraps");
  TORCH_CHECK_TYPE(
      !keys.has(c10::DispatchKey::FuncTorchBatched) && !keys.has(c10::DispatchKey::FuncTorchGradWrapper), name,
      " must be a tensor with memory of its own, got one that a torch.func transform "
      "(vmap, grad) wraps; use ATen's operators there, or register an operator with a batching rule");
  TORCH_CHECK_TYPE(
      !keys.has(c10::DispatchKey::Functionalize) || tensor.is_lazy(), name,
      " must be a tensor with memory of its own, got a functional tensor; "
      "use ATen's operators under functionalization");
  TORCH_CHECK_TYPE(
      !tensor.is_nested(), name,
      " must be an ordinary tensor, got a nested one; "
      "take its parts with .unbind(), or pad it with .to_padded_tensor(value)");
  TORCH_CHECK_TYPE(
      !tensor.is_quantized(), name, " must be an ordinary tensor, got a quantized one (",
      detail::dtype_name(tensor.scalar_type()), "); take .int_repr() or .dequantize()");
  TORCH_CHECK_TYPE(
      tensor.layout() == c10::Layout::Strided, name, " must have layout torch.strided, got ", tensor.layout(),
      "; convert it with .to_dense()");
  TORCH_CHECK_TYPE(
      !tensor.is_meta(), name,
      " must have memory, got a tensor on the meta device; make one that has memory with "
      "torch.empty_like(tensor, device='cpu')");
  TORCH_CHECK_TYPE(
      tensor.is_cpu() || detail::copes(copes, Copes::with_any_device), name, " must be on device cpu, got ",
      tensor.device(), "; copy it with .cpu()");
  TORCH_CHECK_VALUE(
      !tensor._is_zerotensor(), name, " must have memory, got a zero tensor, which has none; copy it with .clone()");
  TORCH_CHECK(
      !tensor.is_conj() || detail::copes(copes, Copes::with_conj), name,
      " must not have its conjugation pending; apply it with .resolve_conj()");
  TORCH_CHECK(
      !tensor.is_neg() || detail::copes(copes, Copes::with_neg), name,
      " must not have its negation pending; apply it with .resolve_neg()");
  TORCH_CHECK_TYPE(tensor.has_storage() && tensor.storage(), name, " must have a storage, got a tensor that has none");
  TORCH_CHECK_VALUE(
      tensor.numel() == 0 || detail::bytes_reached(tensor) <= tensor.storage().nbytes(), name,
      " must lie within its storage, got a tensor that reaches to byte ", detail::bytes_reached(tensor), " of ",
      tensor.storage().nbytes(), "; its storage was resized");
}

inline void check_dtype(const at::TensorBase& tensor, const char* argument, c10::ScalarType wanted) {
  TORCH_CHECK_TYPE(
      tensor.scalar_type() == wanted, ArgumentName{argument}, " must have dtype ", detail::dtype_name(wanted), ", got ",
      detail::dtype_name(tensor.scalar_type()), "; convert it with .to(", detail::dtype_name(wanted), ")");
}

inline void check_dim(const at::TensorBase& tensor, const char* argument, int64_t ndim) {
  TORCH_CHECK_VALUE(
      tensor.dim() == ndim, ArgumentName{argument}, " must have ", ndim, ndim == 1 ? " dimension" : " dimensions",
      ", got ", tensor.dim(), " (sizes ", tensor.sizes(), ")");
}

// All three checks: memory, the dtype `wanted`, and `ndim` dimensions.
inline void check_data(
    const at::TensorBase& tensor,
    const char* argument,
    c10::ScalarType wanted,
    int64_t ndim,
    Copes copes = Copes::with_nothing) {
  check_data(tensor, argument, copes);
  check_dtype(tensor, argument, wanted);
  check_dim(tensor, argument, ndim);
}

// Raises if autograd tracks the tensor, because it does not see a write through a pointer or, with `reads`, a
// computation on values read through one. `instead` tells the user what to do.
inline void check_unwatched(
    const at::TensorBase& tensor,
    const char* argument,
    const char* instead = "write under torch.no_grad() (torch.NoGradGuard in Cython), or to .detach()",
    bool reads = false) {
  TORCH_CHECK(
      !(tensor.requires_grad() && c10::GradMode::is_enabled()), "argument '", argument,
      reads ? "' must not require grad to be read: autograd cannot see what is computed from it; "
            : "' must not require grad to be written to: autograd cannot see the write; ",
      instead);
  TORCH_CHECK(
      !tensor.unsafeGetTensorImpl()->_fw_grad(0, tensor).defined(), "argument '", argument,
      reads ? "' must not be a dual tensor to be read: forward-mode autograd cannot see what is computed "
              "from it; take the primal of torch.autograd.forward_ad.unpack_dual()"
            : "' must not be a dual tensor to be written to: forward-mode autograd cannot see the write; "
              "write to the primal of torch.autograd.forward_ad.unpack_dual()");
}

// Raises unless the caller may write through a pointer. Increments the tensor's version, so that autograd finds out
// if it has saved the old values. Call it after check_data(), once each time that memory is handed out.
//
// torch's own in-place operations allow more: in grad mode they reject only leaves and views of leaves, because they
// record themselves in the graph of any other tensor. A write through a pointer cannot, so gradients would be
// silently wrong. Tensors whose elements share memory, such as those of expand(), are rejected as in torch.
inline void check_write(const at::TensorBase& tensor, const char* argument) {
  check_unwatched(tensor, argument);
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    TORCH_CHECK(
        tensor.stride(d) != 0 || tensor.size(d) <= 1, ArgumentName{argument},
        " must have memory of its own for each element to be written to, got stride 0 in "
        "dimension ",
        d, " of size ", tensor.size(d), "; copy it with .clone()");
  }
  tensor.unsafeGetTensorImpl()->bump_version();  // raises for inference tensors outside inference mode
}

}  // namespace interop
