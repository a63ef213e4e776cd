// DLPack: exports tensors as structs and capsules, imports them from these and from Python objects, and provides the
// C exchange API of torch.Tensor.
//
// The cited rules are from the Python specification (dmlc.github.io/dlpack, "Python Specification for DLPack"),
// `__dlpack__` in the array API standard, and the comments in dlpack.h. Each citation names the rule's heading.
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <ATen/ops/empty_ops.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "check_export.h"
#include "converters.h"
#include "cuda.h"
#include "import.h"
#include "interop/bridges/dtypes.h"
#include "interop/device_guard.h"
#include "interop/error_in_flight.h"
#include "interop/exceptions.h"
#include "interop/free_threading.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"
#include "interop/stream.h"
#include "interop/tensor.h"
#include "memory.h"
#include "names.h"

// As ATen/DLConvertor.h declares them, which includes all of ATen: more than half of the time to compile this file.
namespace at {
TORCH_API DLManagedTensor* toDLPack(const Tensor& src);
TORCH_API DLManagedTensorVersioned* toDLPackVersioned(const Tensor& src);
}  // namespace at

namespace interop::bridges {

// For both directions

namespace {

// The two structs of DLPack: that of version 0, and that of version 1, which has flags. A capsule has the first name
// until a consumer takes over its contents and "renames" it to the second (specification, Implementation).
template <class Managed>
struct Traits;
template <>
struct Traits<DLManagedTensor> {
  static constexpr const char* name = "dltensor";
  static constexpr const char* used = "used_dltensor";
  static constexpr bool versioned = false;
};
template <>
struct Traits<DLManagedTensorVersioned> {
  static constexpr const char* name = "dltensor_versioned";
  static constexpr const char* used = "used_dltensor_versioned";
  static constexpr bool versioned = true;
};

// Runs checks and turns their errors into BufferError, which is raised "when the data cannot be exported as DLPack"
// (array API, __dlpack__).
template <class F>
std::invoke_result_t<F> as_buffer_error(F checks) {
  try {
    return checks();
  } catch (const c10::Error& error) {
    throw c10::BufferError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, error.what_without_backtrace());
  }
}

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

DLDevice dl_device(const c10::Device& device) noexcept {
  return device.is_cpu() ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, device.index()};
}

}  // namespace

c10::Device torch_device(const DLDevice& device, const char* argument, const char* instead) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:  // pinned, which torch treats as CPU memory
    case kDLROCMHost:
      return c10::kCPU;
    case kDLCUDA:
    case kDLCUDAManaged: {
      const auto* devices = interop::detail::find_devices(c10::kCUDA);
      TORCH_CHECK_WITH(
          BufferError, devices, ArgumentName{argument}, " is on CUDA device ", device.device_id,
          ", but this torch (" TORCH_VERSION ") finds no CUDA device; ", instead);
      TORCH_CHECK_WITH(
          BufferError, device.device_id >= 0 && device.device_id < devices->deviceCount(), ArgumentName{argument},
          " must be on a CUDA device from 0 to ", static_cast<int>(devices->deviceCount()) - 1, ", got ",
          device.device_id);
      initialise_cuda();
      return {c10::kCUDA, static_cast<c10::DeviceIndex>(device.device_id)};
    }
    default:
      TORCH_CHECK_WITH(
          BufferError, false, ArgumentName{argument}, " must be on the CPU or on CUDA, got DLPack's device type ",
          static_cast<int>(device.device_type), " (", name_of(device.device_type), "); ", instead);
  }
}

// Export

namespace {

// A checked tensor, and its description, which borrows the tensor's sizes and strides.
struct Described {
  Exported exported;
  DLTensor description;
};

// Raises BufferError unless the tensor is strided, on the CPU or on CUDA, and has memory that holds its values: no
// conj, no neg. Unless `read_only`, autograd must not watch it, or a gradient would be lost.
Described describe(const at::Tensor& tensor, const char* argument, bool read_only) {
  return as_buffer_error([&]() -> Described {
    const Exported exported = check_export(tensor, argument, access(read_only), Devices::cpu_or_cuda);
    const Dtype* dtype = find_dtype(tensor.scalar_type());
    TORCH_CHECK_TYPE(
        dtype, ArgumentName{argument}, " must have a dtype that DLPack has, got ",
        interop::detail::dtype_name(tensor.scalar_type()), "; take its bits with .view(torch.uint8)");
    const at::IntArrayRef sizes = tensor.sizes();
    return {
        exported,
        DLTensor{
            // DLTensor.data: "if the tensor is of size zero, then the data pointer should be set to NULL".
            .data = tensor.numel() == 0 ? nullptr : exported.data,
            .device = dl_device(tensor.device()),
            .ndim = static_cast<int32_t>(sizes.size()),
            .dtype = to_dl(*dtype),
            .shape = const_cast<int64_t*>(sizes.data()),
            // DLTensor.strides: in elements; since DLPack 1.2, never null if there are dimensions.
            .strides = const_cast<int64_t*>(tensor.strides().data()),
            // DLTensor.data: should be aligned to 256 bytes, with the rest here; no library does or relies on it.
            .byte_offset = 0,
        }};
  });
}

// A managed tensor of ours, followed by its sizes and strides.
template <class Managed>
struct ManagedExport {
  Managed managed;
  Hold hold;

  int64_t* numbers() noexcept {
    return reinterpret_cast<int64_t*>(this + 1);
  }

  // The deleter, called on any thread: "sharing beyond Python boundaries" (Implementation). The hold handles the GIL,
  // an error in flight and the end of the interpreter, if necessary.
  static void end(Managed* managed) {
    auto* self = static_cast<ManagedExport*>(managed->manager_ctx);
    self->~ManagedExport();
    ::operator delete(self);
  }
};
static_assert(alignof(ManagedExport<DLManagedTensorVersioned>) >= alignof(int64_t));

// The result owns the tensor's memory, not the tensor, and the storage is pinned for good. Raises BufferError if the
// tensor cannot be exported. Read-only memory has no legacy form.
template <class Managed>
Managed* new_managed(const at::Tensor& tensor, bool read_only, bool copied) {
  const Described described = describe(tensor, "tensor", read_only);
  TORCH_CHECK_WITH(
      BufferError, Traits<Managed>::versioned || described.exported.writable,
      "argument 'tensor' must have writable memory, got one whose elements share memory, or that is over "
      "read-only memory, which a capsule of DLPack 0 cannot mark; pass max_version=(1, 0), or copy it with .clone()");
  const auto ndim = static_cast<size_t>(described.description.ndim);
  Hold hold = described.exported.data ? Hold::of(*described.exported.storage, Resizing::never) : Hold();
  void* raw = ::operator new(sizeof(ManagedExport<Managed>) + 2 * ndim * sizeof(int64_t));
  auto* made = new (raw) ManagedExport<Managed>{.managed = {}, .hold = std::move(hold)};
  Managed& managed = made->managed;
  managed.dl_tensor = described.description;
  managed.dl_tensor.shape = std::copy_n(described.description.shape, ndim, made->numbers()) - ndim;
  managed.dl_tensor.strides = std::copy_n(described.description.strides, ndim, made->numbers() + ndim) - ndim;
  managed.manager_ctx = made;
  managed.deleter = &ManagedExport<Managed>::end;
  if constexpr (Traits<Managed>::versioned) {
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    // "When a copy is made, the producer must set the DLPACK_FLAG_BITMASK_IS_COPIED bit flag" (Semantics).
    managed.flags = (described.exported.writable ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY) |
                    (copied ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
  }
  return &managed;
}

// "PyCapsule_Destructor calls deleter only for capsules whose name is dltensor" (Implementation).
template <class Managed>
void end_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Traits<Managed>::name)) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Traits<Managed>::name));
    managed->deleter(managed);
  }
}

template <class Managed>
PyObject* new_capsule(const at::Tensor& tensor, bool read_only, bool copied) {
  Managed* managed = new_managed<Managed>(tensor, read_only, copied);
  PyObject* capsule = PyCapsule_New(managed, Traits<Managed>::name, &end_capsule<Managed>);
  if (!capsule) {
    managed->deleter(managed);
    throw PythonError();
  }
  return capsule;
}

}  // namespace

DLTensor dltensor_of_tensor(const at::Tensor& tensor, bool read_only) {
  const Described described = describe(tensor, "tensor", read_only);
  TORCH_CHECK_WITH(
      BufferError, read_only || described.exported.writable,
      "argument 'tensor' must have writable memory, got one whose elements share memory, or that is over "
      "read-only memory; copy it with .clone(), or request read-only memory");
  return described.description;
}

DLManagedTensorVersioned* managed_of_tensor(const at::Tensor& tensor, bool read_only) {
  return new_managed<DLManagedTensorVersioned>(tensor, read_only, false);
}

PyObject* capsule_of_tensor(const at::Tensor& given, const DlpackExport& wanted) {
  const bool moves = wanted.device && *wanted.device != given.device();
  const bool copies = moves || wanted.copy.value_or(false);
  TORCH_CHECK_VALUE(
      !moves || wanted.copy.value_or(true), "argument 'copy' is False, but a copy is necessary to move 'tensor' from ",
      given.device(), " to ", wanted.device.value_or(c10::kCPU), "; pass copy=None");
  at::Tensor copied;
  if (copies) {
    describe(given, "tensor", wanted.readonly);
    copied = moves ? copy_on(given.detach(), *wanted.device) : contiguous_copy(given.detach());
  }
  const at::Tensor& tensor = copies ? copied : given;
  OwnedRef capsule(
      wanted.versioned ? new_capsule<DLManagedTensorVersioned>(tensor, wanted.readonly, copies)
                       : new_capsule<DLManagedTensor>(tensor, wanted.readonly, copies));
  // -1 means "producer must not perform any synchronization" (array API, __dlpack__).
  if (tensor.is_cuda() && wanted.stream != -1) {
    let_stream_wait(tensor.device(), wanted.stream);
  }
  return capsule.release();
}

// Import: managed tensors and capsules

namespace {

constexpr const char* argument = "obj";
constexpr Subject subject{argument, "copy it in the library that made it"};

const Dtype& torch_dtype(const DLDataType& type) {
  const Dtype* found = find_dtype(type);
  TORCH_CHECK_TYPE(
      found, "argument 'obj' must have a dtype that torch has, got DLPack's type code ", static_cast<int>(type.code),
      " with ", static_cast<int>(type.bits), " bits and ", static_cast<int>(type.lanes),
      " lanes; convert it in the library that made it");
  return *found;
}

// If the major version differs, "it is not safe to access any other fields" (DLPackVersion) than the deleter. The
// owner of the struct, which is the capsule or tensor_of_managed(), calls it.
template <class Managed>
void check_version([[maybe_unused]] const Managed& managed) {
  if constexpr (Traits<Managed>::versioned) {
    TORCH_CHECK_WITH(
        BufferError, managed.version.major == DLPACK_MAJOR_VERSION, "argument 'obj' must be of DLPack ",
        DLPACK_MAJOR_VERSION, ", got a tensor of version ", managed.version.major, ".", managed.version.minor,
        "; request an older one with __dlpack__(max_version=(", DLPACK_MAJOR_VERSION, ", 0))");
  }
}

template <class Managed>
uint64_t flags_of([[maybe_unused]] const Managed& managed) noexcept {
  if constexpr (Traits<Managed>::versioned) {
    return managed.flags;
  } else {
    return 0;
  }
}

bool moves(const DlpackImport& wanted, const c10::Device& device) noexcept {
  return wanted.device && *wanted.device != device;
}

// Raises ValueError if memory on `device` does not meet `wanted`: it is read-only, a copy, or on another device.
void check_wanted(const DlpackImport& wanted, const c10::Device& device, bool read_only, bool copied) {
  const bool copies = wanted.copy.value_or(false) || moves(wanted, device);
  check_writable(read_only && !copies, wanted.on_readonly, "obj", "read-only memory");
  if (!wanted.copy.value_or(true)) {
    TORCH_CHECK_VALUE(!copied, "argument 'copy' is False, but 'obj' gave a copy; pass copy=None");
    TORCH_CHECK_VALUE(
        !moves(wanted, device), "argument 'copy' is False, but a copy is necessary to move 'obj' from ", device, " to ",
        *wanted.device, "; pass copy=None");
    TORCH_CHECK_VALUE(
        !read_only || wanted.on_readonly != OnReadonly::copy,
        "argument 'copy' is False, but 'on_readonly' requests a copy of read-only memory, which 'obj' has; pass "
        "on_readonly='share' if nothing will write to the tensor");
  }
}

// Whose memory a tensor is over.
enum class Memory { ours, foreign };

// Moves an imported tensor to the wanted device, or copies it if wanted.
at::Tensor as_wanted(at::Tensor tensor, const DlpackImport& wanted, Memory memory) {
  const c10::Device from = tensor.device();
  const auto done = [&](at::Tensor copied) {
    return memory == Memory::foreign ? finished(std::move(copied), from) : copied;
  };
  if (moves(wanted, from)) {
    return done(copy_on(tensor, *wanted.device));
  }
  const bool copies = wanted.copy.value_or(false) || (wanted.on_readonly == OnReadonly::copy &&
                                                      is_read_only(*tensor.storage().unsafeGetStorageImpl()));
  return copies ? done(contiguous_copy(tensor)) : std::move(tensor);
}

// The owner behind a tensor over a managed tensor. "It can be NULL if there is no way for the caller to provide a
// reasonable destructor" (deleter). Otherwise it is called once, with the GIL held and any error in flight set aside,
// because some deleters rely on the GIL and some forget the error.
template <class Managed>
struct Taken {
  static constexpr const char* type_name = "interop._bridges.Dlpack";
  static constexpr const char* doc = "Owns the memory that a tensor took over by DLPack.";

  Managed* managed = nullptr;

  ~Taken() {
    if (managed && managed->deleter) {
      const ErrorInFlight error;
      managed->deleter(managed);
      if (PyErr_Occurred()) {
        (PyErr_WriteUnraisable)(nullptr);  // the function, not the macro of callback.h: no kernel is involved
      }
    }
  }
};

// The deleter of torch's own managed tensors: ready_dlpack() finds it. Unlike others, it may be called without the GIL
// and hides no error, because it only drops a tensor: torch itself takes the GIL if the tensor has a Python object.
template <class Managed>
void (*deleter_of_torch)(Managed*) = nullptr;

}  // namespace

template <class Managed>
void detail::drop_managed(void* managed) noexcept {
  if (interpreter_is_alive()) {
    free_flat<Needs::nothing>([](void* one) { deleter_of_torch<Managed>(static_cast<Managed*>(one)); }, managed);
  }
}
template void detail::drop_managed<DLManagedTensor>(void* managed) noexcept;
template void detail::drop_managed<DLManagedTensorVersioned>(void* managed) noexcept;

namespace {

// Checks a managed tensor, calls `take`, and takes ownership. If a check or `take` throws, the caller still owns the
// managed tensor. Returns a copy, or a tensor on another device, only if requested.
template <class Managed, class F>
at::Tensor take_over(Managed* managed, const DlpackImport& wanted, F take) {
  check_version(*managed);
  const uint64_t flags = flags_of(*managed);
  const bool read_only = flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  const bool copied = flags & DLPACK_FLAG_BITMASK_IS_COPIED;
  const DLTensor& tensor = managed->dl_tensor;
  const c10::Device device = torch_device(tensor.device);
  check_wanted(wanted, device, read_only, copied);
  const bool is_torchs =
      managed->deleter == &ManagedExport<Managed>::end || managed->deleter == deleter_of_torch<Managed>;
  at::Tensor shared = as_buffer_error([&] {
    TORCH_CHECK_TYPE(
        !(flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED),
        "argument 'obj' must have packed elements, got padded ones of less than a byte, which torch does not have");
    const Dtype& dtype = torch_dtype(tensor.dtype);
    // Strides that are null stand for "a row-major compact array" (Implementation).
    const ForeignLayout layout(subject, tensor.ndim, tensor.shape, tensor.strides, dtype, Unit::elements);
    void* data = layout.numel() == 0 ? nullptr : first_element(subject, tensor.data, tensor.byte_offset, dtype, layout);
    if (managed->deleter == &ManagedExport<Managed>::end) {
      // Our own export: reuses its hold, so that round trips do not nest owners.
      take();
      Hold hold = std::move(static_cast<ManagedExport<Managed>*>(managed->manager_ctx)->hold);
      managed->deleter(managed);
      return bridges::lift_fresh(tensor_over(std::move(hold).into_data_ptr(data, device, read_only), layout, dtype));
    }
    if (managed->deleter == deleter_of_torch<Managed> && !read_only) {
      take();
      return bridges::lift_fresh(tensor_over({data, managed, &detail::drop_managed<Managed>, device}, layout, dtype));
    }
    OwnedRef owner = Owner<Taken<Managed>>::make();
    take();
    Owner<Taken<Managed>>::of(owner).managed = managed;
    return bridges::lift_fresh(
        tensor_over({data, owner.release(), read_only ? &drop_read_only_owner : &drop_owner, device}, layout, dtype));
  });
  DlpackImport rest = wanted;
  rest.copy = wanted.copy.value_or(false) && (!copied || read_only);
  return as_wanted(std::move(shared), rest, is_torchs ? Memory::ours : Memory::foreign);
}

// Calls `before`, then takes ownership of `managed`. Calls the deleter if anything fails.
template <class F>
at::Tensor take_or_delete(DLManagedTensorVersioned* managed, const DlpackImport& wanted, F before) {
  Taken<DLManagedTensorVersioned> owner{managed};
  return take_over(managed, wanted, [&] {
    before();
    owner.managed = nullptr;
  });
}

// The contents of a capsule, which is now marked as used; null if it has another name. Call it in a critical section.
template <class Managed>
Managed* claim(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Traits<Managed>::name)) {
    return nullptr;
  }
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Traits<Managed>::name));
  checked(PyCapsule_SetName(capsule, Traits<Managed>::used));
  return managed;
}

// Consumes a claimed capsule. If that fails before it takes ownership, the capsule gets its name back.
template <class Managed>
at::Tensor consume(PyObject* capsule, Managed* managed, const DlpackImport& wanted) {
  bool taken = false;
  try {
    return take_over(managed, wanted, [&] { taken = true; });
  } catch (...) {
    if (!taken) {
      const CriticalSection section(capsule);
      PyCapsule_SetName(capsule, Traits<Managed>::name);
    }
    throw;
  }
}

// For messages, which must be UTF-8.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') {
      c = '?';
    }
  }
  return text;
}

at::Tensor tensor_of_capsule(PyObject* capsule, const DlpackImport& wanted) {
  DLManagedTensorVersioned* versioned = nullptr;
  DLManagedTensor* unversioned = nullptr;
  const char* name = nullptr;
  bool used = false;
  {
    // One of the threads that claim the same capsule succeeds, and the others see that it is used.
    const CriticalSection section(capsule);
    versioned = claim<DLManagedTensorVersioned>(capsule);
    unversioned = versioned ? nullptr : claim<DLManagedTensor>(capsule);
    if (!versioned && !unversioned) {
      name = PyCapsule_GetName(capsule);
      used = PyCapsule_IsValid(capsule, Traits<DLManagedTensorVersioned>::used) ||
             PyCapsule_IsValid(capsule, Traits<DLManagedTensor>::used);
    }
  }
  if (versioned) {
    return consume(capsule, versioned, wanted);
  }
  if (unversioned) {
    return consume(capsule, unversioned, wanted);
  }
  PyErr_Clear();
  TORCH_CHECK_VALUE(!used, "argument 'obj' must be an unused capsule; make another one");
  TORCH_CHECK_TYPE(
      false, "argument 'obj' must be a capsule with the name dltensor or dltensor_versioned, got one with ",
      name ? printable(name) : "none");
}

}  // namespace

at::Tensor tensor_of_managed(DLManagedTensorVersioned* managed, const DlpackImport& wanted) {
  return take_or_delete(managed, wanted, [] {});
}

// Import: Python objects

namespace {

// Created by ready_dlpack(): see names.h.
PyObject* our_version = nullptr;
PyObject* only_max_version = nullptr;

PyObject* interned(const char* text) {
  return checked(PyUnicode_InternFromString(text));
}

// Another tensor over the same storage, with the same version counter: autograd detects writes to either.
at::Tensor alias(const at::Tensor& tensor, const DlpackImport& wanted) {
  const Described described = describe(tensor, argument, false);  // also for a copy, which would lose the gradient too
  check_wanted(wanted, tensor.device(), is_read_only(*described.exported.storage), false);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return as_wanted(at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(), true)), wanted, Memory::ours);
}

// A plain NumPy array overrides nothing and is on the CPU. Getting a capsule from it takes as long as all the rest.
at::Tensor tensor_of_plain_array(PyObject* array, const DlpackImport& wanted) {
  at::Tensor shared = as_buffer_error([&] { return tensor_of_array(array, OnReadonly::share, argument); });
  check_wanted(wanted, c10::kCPU, is_read_only(*shared.storage().unsafeGetStorageImpl()), false);
  return as_wanted(std::move(shared), wanted, Memory::foreign);
}

// Whether a class that inherits `table` overrides __dlpack__, which knows more than the parent's table.
bool has_another_method(PyTypeObject* type, PyObject* table) {
  PyTypeObject* parent = type;
  while (parent->tp_base && type_attribute(parent->tp_base, names::exchange_api).get() == table) {
    parent = parent->tp_base;
  }
  return parent != type && type_attribute(parent, names::dlpack).get() != type_attribute(type, names::dlpack).get();
}

// The newest table that we can read, or null. It is an attribute of the type, and "if the current major version is
// larger [...], the consumer may walk" to older tables (DLPackExchangeAPIHeader).
const DLPackExchangeAPI* exchange_api_of(PyTypeObject* type) {
  const SharedRef capsule = type_attribute(type, names::exchange_api);
  if (!capsule || !PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api") || has_another_method(type, capsule.get()))
      [[likely]] {
    return nullptr;
  }
  auto* header = static_cast<DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  while (header && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  auto* api = reinterpret_cast<DLPackExchangeAPI*>(header);
  return api && api->managed_tensor_from_py_object_no_sync ? api : nullptr;
}

// "-1 on failure with a Python exception set", which is not certain.
void check_status(int status, const char* function) {
  if (status == 0) [[likely]] {
    return;
  }
  if (!PyErr_Occurred()) {
    PyErr_Format(
        PyExc_BufferError, "argument 'obj': %s of its DLPack exchange API failed without an error message", function);
  }
  throw PythonError();
}

// Makes the current stream wait for the producer's stream.
void wait_for_producer(const DLPackExchangeAPI& api, const DLDevice& where) {
  const c10::Device device = torch_device(where);
  if (device.is_cpu() || !api.current_work_stream) {
    return;
  }
  void* stream = nullptr;
  check_status(api.current_work_stream(where.device_type, where.device_id, &stream), "current_work_stream");
  const auto number = reinterpret_cast<intptr_t>(stream);
  wait_for_stream(device, number == 0 ? 1 : number);
}

at::Tensor tensor_of_exchange(PyObject* object, const DLPackExchangeAPI& api, const DlpackImport& wanted) {
  DLManagedTensorVersioned* managed = nullptr;
  check_status(api.managed_tensor_from_py_object_no_sync(object, &managed), "managed_tensor_from_py_object_no_sync");
  TORCH_CHECK_WITH(BufferError, managed, "argument 'obj': its DLPack exchange API returned no tensor");
  return take_or_delete(managed, wanted, [&] { wait_for_producer(api, managed->dl_tensor.device); });
}

// Works while an error is set.
bool has_attribute(PyObject* object, PyObject* name) {
  const ErrorInFlight error;
  return PyObject_HasAttr(object, name);
}

// Calls __dlpack_device__().
DLDevice device_of_object(PyObject* object) {
  const OwnedRef pair(
      PyObject_VectorcallMethod(names::dlpack_device, &object, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!pair) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) && !has_attribute(object, names::dlpack_device)) {
      PyErr_Format(
          PyExc_TypeError,
          "argument 'obj' must be a DLPack capsule, a torch.Tensor or an object with the methods __dlpack__ and "
          "__dlpack_device__, got %.200s; try torch.as_tensor(obj)",
          Py_TYPE(object)->tp_name);
    }
    throw PythonError();
  }
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
    raise_error(
        PyExc_TypeError, "argument 'obj': __dlpack_device__() must return two integers, got %.200R", pair.get());
  }
  return dl_device_of(pair.get(), "obj");
}

// The keyword arguments of a call of __dlpack__.
class Keywords {
 public:
  void add(const char* name, PyObject* value) {
    values_[count_ + 1] = checked(value);
    names_[count_++] = name;
  }
  ~Keywords() {
    for (size_t i = 1; i <= count_; ++i) {
      Py_DECREF(values_[i]);
    }
  }

  // Calls the method; null if it raises.
  PyObject* call(PyObject* object, PyObject* method) {
    values_[0] = object;
    if (count_ == 0) {
      return PyObject_VectorcallMethod(method, values_, 1, nullptr);
    }
    if (count_ == 1 && names_[0] == max_version) [[likely]] {
      return PyObject_VectorcallMethod(method, values_, 1, only_max_version);
    }
    OwnedRef names(PyTuple_New(static_cast<Py_ssize_t>(count_)));
    if (!names) {
      return nullptr;
    }
    for (size_t i = 0; i < count_; ++i) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), interned(names_[i]));
    }
    return PyObject_VectorcallMethod(method, values_, 1, names.get());
  }

  static constexpr const char* max_version = "max_version";

 private:
  size_t count_ = 0;
  const char* names_[4];
  PyObject* values_[5];  // the object, then the values
};

bool is_cpu(const DLDevice& device) noexcept {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost;
}

bool is_cuda(const DLDevice& device) noexcept {
  return device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
}

// Calls __dlpack__(). Producers from before DLPack 1 do not know all keywords, and raise TypeError.
OwnedRef capsule_of_object(PyObject* object, const DLDevice& from, const DlpackImport& wanted) {
  const bool reachable = is_cpu(from) || (is_cuda(from) && interop::detail::find_devices(c10::kCUDA));
  Keywords keywords;
  keywords.add(Keywords::max_version, Py_NewRef(our_version));
  OwnedRef stream;
  if (is_cuda(from) && reachable) {
    // "The consumer must pass the stream it will use to the producer" (Semantics).
    stream = OwnedRef(checked(PyLong_FromLongLong(current_stream_number(torch_device(from)))));
    keywords.add("stream", Py_NewRef(stream.get()));
  }
  if (!reachable && wanted.device) {
    // torch cannot move the memory, so the producer must.
    const DLDevice to = dl_device(*wanted.device);
    keywords.add("dl_device", Py_BuildValue("(ii)", static_cast<int>(to.device_type), static_cast<int>(to.device_id)));
  }
  if (wanted.copy && (!*wanted.copy || !reachable)) {
    keywords.add("copy", Py_NewRef(*wanted.copy ? Py_True : Py_False));
  }
  OwnedRef capsule(keywords.call(object, names::dlpack));
  if (!capsule && reachable && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    Keywords old;
    if (stream) {
      old.add("stream", Py_NewRef(stream.get()));
    }
    capsule = OwnedRef(old.call(object, names::dlpack));
  }
  checked(capsule.get());
  return capsule;
}

at::Tensor tensor_of_object(PyObject* object, const DlpackImport& wanted) {
  check_unmasked(object, argument);
  const DLDevice from = device_of_object(object);
  if (!wanted.device) {
    torch_device(from);  // before the producer does any work
  }
  const OwnedRef capsule = capsule_of_object(object, from, wanted);
  if (!PyCapsule_CheckExact(capsule.get())) {
    raise_error(
        PyExc_TypeError, "argument 'obj': __dlpack__() must return a capsule, got %.200s",
        Py_TYPE(capsule.get())->tp_name);
  }
  return tensor_of_capsule(capsule.get(), wanted);
}

template <class Managed>
void find_deleter_of_torch(Managed* made) noexcept {
  deleter_of_torch<Managed> = made->deleter;
  made->deleter(made);
}

}  // namespace

int ready_dlpack() noexcept {
  if (!our_version) {
    our_version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  }
  if (!only_max_version) {
    only_max_version = Py_BuildValue("(s)", Keywords::max_version);
  }
  if (!our_version || !only_max_version) {
    return -1;
  }
  const bool found =
      guarded([] {
        // Not by at::empty(), which a mode may turn into something else.
        const Dtype& dtype = *find_dtype(c10::kFloat);
        const int64_t size = 0;
        const ForeignLayout layout(subject, 1, &size, static_cast<const int64_t*>(nullptr), dtype, Unit::elements);
        const at::Tensor none = tensor_over({nullptr, c10::kCPU}, layout, dtype);
        find_deleter_of_torch(at::toDLPack(none));
        find_deleter_of_torch(at::toDLPackVersioned(none));
      }) == 0;
  if (!found) {
    return -1;
  }
  return Owner<Taken<DLManagedTensor>>::ready() < 0 || Owner<Taken<DLManagedTensorVersioned>>::ready() < 0 ? -1 : 0;
}

at::Tensor tensor_of_dlpack(PyObject* object, const DlpackImport& wanted) {
  if (PyCapsule_CheckExact(object)) {
    return tensor_of_capsule(object, wanted);
  }
  if (is_array(object)) {
    return tensor_of_plain_array(object, wanted);
  }
  if (is_tensor(object)) {
    // A subclass may override __dlpack__.
    auto* tensor_type = reinterpret_cast<PyTypeObject*>(THPVariableClass);
    if (Py_TYPE(object) == tensor_type ||
        type_attribute(Py_TYPE(object), names::dlpack).get() == type_attribute(tensor_type, names::dlpack).get()) {
      return alias(reinterpret_cast<THPVariable*>(object)->cdata, wanted);
    }
  } else if (const DLPackExchangeAPI* api = exchange_api_of(Py_TYPE(object))) {
    return tensor_of_exchange(object, *api, wanted);
  }
  return tensor_of_object(object, wanted);
}

// The C exchange API of torch.Tensor, with our checks: torch's own table does not check conj, neg and gradients.
// Nothing here waits for streams; the caller does ("does not perform any stream synchronization").

namespace {

const at::Tensor& exchanged(void* object) {
  auto* given = static_cast<PyObject*>(object);
  if (!is_tensor(given)) {
    raise_error(PyExc_TypeError, "expected a torch.Tensor, got %.200s", Py_TYPE(given)->tp_name);
  }
  return reinterpret_cast<THPVariable*>(given)->cdata;
}

int from_object(void* object, DLManagedTensorVersioned** out) noexcept {
  *out = nullptr;
  return guarded([&] { *out = managed_of_tensor(exchanged(object), false); });
}

// "The ownership of the tensor is stolen", even on failure.
int to_object(DLManagedTensorVersioned* managed, void** out) noexcept {
  *out = nullptr;
  return guarded([&] { *out = wrap(tensor_of_managed(managed, {})); });
}

int view_object(void* object, DLTensor* out) noexcept {
  return guarded([&] { *out = dltensor_of_tensor(exchanged(object), false); });
}

int current_work_stream(DLDeviceType type, int32_t index, void** out) noexcept {
  *out = nullptr;
  return guarded([&] {
    const c10::Device device = torch_device({type, index});
    if (!device.is_cpu()) {  // for which "the producer can simply return NULL"
      *out = current_stream(device).native_handle();
    }
  });
}

// Needs no GIL, and sets no Python error. "Only the dtype, ndim, shape, and device fields are used."
int allocate(
    DLTensor* prototype,
    DLManagedTensorVersioned** out,
    void* context,
    void (*set_error)(void* context, const char* kind, const char* message)) noexcept {
  *out = nullptr;
  try {
    const Dtype* dtype = find_dtype(prototype->dtype);
    TORCH_CHECK_TYPE(dtype, "torch has no such dtype");
    const at::IntArrayRef sizes(prototype->shape, static_cast<size_t>(prototype->ndim));
    const at::Tensor made = at::_ops::empty_memory_format::call(
        c10::fromIntArrayRefSlow(sizes), dtype->type, c10::kStrided, torch_device(prototype->device), false, {});
    const Gil gil;
    *out = managed_of_tensor(made, false);
    return 0;
  } catch (const c10::Error& error) {
    set_error(context, "BufferError", error.what_without_backtrace());
  } catch (const std::exception& error) {
    set_error(context, "MemoryError", error.what());
  }
  return -1;
}

}  // namespace

const DLPackExchangeAPI* exchange_api() noexcept {
  static const DLPackExchangeAPI api = {
      .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, .prev_api = nullptr},
      .managed_tensor_allocator = allocate,
      .managed_tensor_from_py_object_no_sync = from_object,
      .managed_tensor_to_py_object_no_sync = to_object,
      .dltensor_from_py_object_no_sync = view_object,
      .current_work_stream = current_work_stream,
  };
  return &api;
}

}  // namespace interop::bridges
