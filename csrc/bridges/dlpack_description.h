// DLPack's words for what torch has: devices, dtypes, and a description of a tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <type_traits>

#include "export.h"
#include "interop/bridges/dtypes.h"

namespace interop::bridges {

namespace detail {

// Runs checks. Whatever they find wrong with memory is a BufferError to those who exchange it by DLPack.
template <class F>
std::invoke_result_t<F> as_buffer_error(F checks) {
  try {
    return checks();
  } catch (const c10::Error& error) {
    throw c10::BufferError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, error.what_without_backtrace());
  }
}

}  // namespace detail

inline DLDevice dl_device(const c10::Device& device) noexcept {
  return device.is_cpu() ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, device.index()};
}

// A tensor that may be exported, and its description, whose sizes and strides are the tensor's own.
struct Described {
  Exported exported;
  DLTensor description;
};

// Raises BufferError unless the tensor is a strided one on the CPU or on CUDA, with memory that holds its values: no
// conj, no neg, no gradient that would be lost unless it is asked for `read_only`.
inline Described describe(const at::Tensor& tensor, const char* argument, bool read_only) {
  return detail::as_buffer_error([&]() -> Described {
    const Exported exported = check_export(tensor, argument, read_only, Where::cpu_or_cuda);
    const Dtype* dtype = find_dtype(tensor.scalar_type());
    TORCH_CHECK_TYPE(
        dtype,
        "argument '",
        argument,
        "' must have a dtype that DLPack has, got ",
        interop::detail::dtype_name(tensor.scalar_type()),
        "; take its bits with .view(torch.uint8)");
    const at::IntArrayRef sizes = tensor.sizes();
    return {
        exported,
        DLTensor{
            .data = tensor.numel() == 0 ? nullptr : exported.data,
            .device = dl_device(tensor.device()),
            .ndim = static_cast<int32_t>(sizes.size()),
            .dtype = to_dl(*dtype),
            .shape = const_cast<int64_t*>(sizes.data()),
            .strides = const_cast<int64_t*>(tensor.strides().data()),
            .byte_offset = 0,
        }};
  });
}

// The description alone; see interop::dlpack::to_dltensor().
inline DLTensor to_dltensor(const at::Tensor& tensor, bool read_only) {
  const Described described = describe(tensor, "tensor", read_only);
  TORCH_CHECK_WITH(
      BufferError,
      read_only || described.exported.writable,
      "argument 'tensor' must have memory that can be written to, got one whose elements share memory, or that is over "
      "read-only memory; copy it with .clone(), or ask to read only");
  return described.description;
}

}  // namespace interop::bridges
