// See dlpack_managed.h.
#include "dlpack_managed.h"

#include <ATen/core/TensorBody.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "copy.h"
#include "cuda_memory.h"
#include "dlpack_description.h"
#include "dlpack_owner.h"
#include "foreign.h"
#include "interop/device_guard.h"
#include "memory.h"
#include "read_only.h"

namespace interop::bridges {

namespace {

// A managed tensor of ours. Sizes and strides lie behind it.
template <class Managed>
struct Owning {
  Managed managed;
  Hold hold;

  int64_t* numbers() noexcept {
    return reinterpret_cast<int64_t*>(this + 1);
  }

  // The deleter, on any thread. What is held looks after the GIL itself where it needs it.
  static void end(Managed* managed) {
    auto* self = static_cast<Owning*>(managed->manager_ctx);
    self->~Owning();
    ::operator delete(self);
  }
};
static_assert(alignof(Owning<DLManagedTensorVersioned>) >= alignof(int64_t));

constexpr Subject subject{"obj", "copy it where it comes from"};

const char* name_of(DLDeviceType type) noexcept {
  switch (type) {
    case kDLOpenCL:
      return "OpenCL";
    case kDLVulkan:
      return "Vulkan";
    case kDLMetal:
      return "Metal";
    case kDLROCM:
      return "ROCm";
    case kDLOneAPI:
      return "oneAPI";
    case kDLWebGPU:
      return "WebGPU";
    default:
      return "unknown";
  }
}

const Dtype& torch_dtype(const DLDataType& type) {
  const Dtype* found = find_dtype(type);
  TORCH_CHECK_TYPE(
      found,
      "argument 'obj' must have a dtype that torch has, got DLPack's type code ",
      static_cast<int>(type.code),
      " with ",
      static_cast<int>(type.bits),
      " bits and ",
      static_cast<int>(type.lanes),
      " lanes; convert it where it comes from");
  return *found;
}

void* first_element(const DLTensor& tensor) {
  uintptr_t address;
  TORCH_CHECK_VALUE(
      !__builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), tensor.byte_offset, &address) &&
          (tensor.data || tensor.byte_offset == 0),
      "argument 'obj' must lie in the address space, got the address ",
      tensor.data,
      " and a byte offset of ",
      tensor.byte_offset);
  return reinterpret_cast<void*>(address);
}

template <class Managed>
void check_version([[maybe_unused]] const Managed& managed) {
  if constexpr (Kind<Managed>::versioned) {
    TORCH_CHECK_WITH(
        BufferError,
        managed.version.major == DLPACK_MAJOR_VERSION,
        "argument 'obj' must be of DLPack ",
        DLPACK_MAJOR_VERSION,
        ", got a tensor of version ",
        managed.version.major,
        ".",
        managed.version.minor,
        "; ask for an older one with __dlpack__(max_version=(",
        DLPACK_MAJOR_VERSION,
        ", 0))");
  }
}

template <class Managed>
uint64_t flags_of([[maybe_unused]] const Managed& managed) noexcept {
  if constexpr (Kind<Managed>::versioned) {
    return managed.flags;
  } else {
    return 0;
  }
}

template <class Managed>
void call_deleter(void* context) {
  auto* managed = static_cast<Managed*>(context);
  if (managed->deleter) {
    managed->deleter(managed);
  }
}

bool moves(const DlpackImport& wanted, const c10::Device& device) noexcept {
  return wanted.device && *wanted.device != device;
}

template <class Managed>
at::Tensor take_over(Managed* managed, const DlpackImport& wanted, c10::function_ref<void()> take) {
  check_version(*managed);  // first: the rest of the struct may be different
  const uint64_t flags = flags_of(*managed);
  const bool read_only = flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  const bool copied = flags & DLPACK_FLAG_BITMASK_IS_COPIED;
  const DLTensor& tensor = managed->dl_tensor;
  const c10::Device device = torch_device(tensor.device);
  check_wanted(wanted, device, read_only, copied);
  at::Tensor shared = detail::as_buffer_error([&] {
    TORCH_CHECK_TYPE(
        !(flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED),
        "argument 'obj' must have packed elements, got padded ones of less than a byte, which torch does not have");
    const Dtype& dtype = torch_dtype(tensor.dtype);
    const Layout layout(subject, tensor.ndim, tensor.shape, tensor.strides, dtype, Unit::elements);
    void* data = layout.numel() == 0 ? nullptr : first_element(tensor);
    check_pointer(subject, data, dtype, layout);
    PyObject* owner = new_dlpack_owner();
    if (!owner) {
      throw PythonError();
    }
    c10::DataPtr memory(data, owner, read_only ? &drop_read_only_owner : &drop_owner, device);
    take();
    give_to_owner(owner, managed, &call_deleter<Managed>);
    return lifted(tensor_over(std::move(memory), layout, dtype));
  });
  DlpackImport rest = wanted;
  rest.copy = wanted.copy.value_or(false) && (!copied || read_only);
  return as_wanted(std::move(shared), rest);
}

}  // namespace

c10::Device torch_device(const DLDevice& device, const char* argument, const char* instead) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:  // pinned: to torch, memory of the CPU
    case kDLROCMHost:
      return c10::kCPU;
    case kDLCUDA:
    case kDLCUDAManaged: {
      const auto* devices = interop::detail::find_devices(c10::kCUDA);
      TORCH_CHECK_WITH(
          BufferError,
          devices,
          "argument '",
          argument,
          "' is on CUDA device ",
          device.device_id,
          ", and this torch (" TORCH_VERSION ") finds no CUDA device; ",
          instead);
      TORCH_CHECK_WITH(
          BufferError,
          device.device_id >= 0 && device.device_id < devices->deviceCount(),
          "argument '",
          argument,
          "' must be on a CUDA device from 0 to ",
          static_cast<int>(devices->deviceCount()) - 1,
          ", got ",
          device.device_id);
      initialise_cuda();
      return {c10::kCUDA, static_cast<c10::DeviceIndex>(device.device_id)};
    }
    default:
      TORCH_CHECK_WITH(
          BufferError,
          false,
          "argument '",
          argument,
          "' must be on the CPU or on CUDA, got a device of DLPack's type ",
          static_cast<int>(device.device_type),
          " (",
          name_of(device.device_type),
          "); ",
          instead);
  }
}

template <class Managed>
Managed* managed_of_tensor(const at::Tensor& tensor, bool read_only, bool copied) {
  const Described described = describe(tensor, "tensor", read_only);
  TORCH_CHECK_WITH(
      BufferError,
      Kind<Managed>::versioned || described.exported.writable,
      "argument 'tensor' must have memory that can be written to, got one whose elements share memory, or that is over "
      "read-only memory, which a capsule of DLPack 0 cannot say; pass max_version=(1, 0), or copy it with .clone()");
  const auto ndim = static_cast<size_t>(described.description.ndim);
  void* raw = ::operator new(sizeof(Owning<Managed>) + 2 * ndim * sizeof(int64_t));
  auto* owning = new (raw) Owning<Managed>();
  try {
    if (described.exported.data) {
      owning->hold = Hold::of(*described.exported.storage);
      pin_for_good(*described.exported.storage);
    }
  } catch (...) {
    owning->~Owning<Managed>();
    ::operator delete(raw);
    throw;
  }
  Managed& managed = owning->managed;
  managed.dl_tensor = described.description;
  managed.dl_tensor.shape = std::copy_n(described.description.shape, ndim, owning->numbers()) - ndim;
  managed.dl_tensor.strides = std::copy_n(described.description.strides, ndim, owning->numbers() + ndim) - ndim;
  managed.manager_ctx = owning;
  managed.deleter = &Owning<Managed>::end;
  if constexpr (Kind<Managed>::versioned) {
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.flags = (described.exported.writable ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY) |
                    (copied ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
  }
  return &managed;
}

template DLManagedTensor* managed_of_tensor(const at::Tensor& tensor, bool read_only, bool copied);
template DLManagedTensorVersioned* managed_of_tensor(const at::Tensor& tensor, bool read_only, bool copied);

void check_wanted(const DlpackImport& wanted, const c10::Device& device, bool read_only, bool copied) {
  const bool copies = wanted.copy.value_or(false) || moves(wanted, device);
  check_writable(read_only && !copies, wanted.on_readonly, "obj", "read-only memory");
  if (!wanted.copy.value_or(true)) {
    TORCH_CHECK_VALUE(!copied, "argument 'copy' is False, but 'obj' gave a copy; pass copy=None");
    TORCH_CHECK_VALUE(
        !moves(wanted, device),
        "argument 'copy' is False, but to bring 'obj' from ",
        device,
        " to ",
        *wanted.device,
        " is to copy it; pass copy=None");
    TORCH_CHECK_VALUE(
        !read_only || wanted.on_readonly != OnReadonly::copy,
        "argument 'copy' is False, but 'on_readonly' asks for a copy of read-only memory, which 'obj' has; pass "
        "on_readonly='share' if nothing will write to the tensor");
  }
}

at::Tensor as_wanted(at::Tensor tensor, const DlpackImport& wanted) {
  if (moves(wanted, tensor.device())) {
    return copy_on(tensor, *wanted.device);
  }
  const bool copies = wanted.copy.value_or(false) || (wanted.on_readonly == OnReadonly::copy &&
                                                      is_read_only(*tensor.storage().unsafeGetStorageImpl()));
  return copies ? contiguous_copy(tensor) : std::move(tensor);
}

at::Tensor tensor_of_managed(DLManagedTensor* managed, const DlpackImport& wanted, c10::function_ref<void()> take) {
  return take_over(managed, wanted, take);
}

at::Tensor tensor_of_managed(
    DLManagedTensorVersioned* managed, const DlpackImport& wanted, c10::function_ref<void()> take) {
  return take_over(managed, wanted, take);
}

}  // namespace interop::bridges
