// The functions of torch's C interface that these headers call, declared as torch declares them.
//
// torch's own header (torch/csrc/stable/c/shim.h) includes <iostream>, <complex>, <functional> and <unordered_map>,
// which would dominate the compilation of a small module. In C, a declaration is no more than this, and a compiler
// that sees both headers rejects any difference: tests/stable/test_headers.py compiles both.
#pragma once

#include <cstddef>
#include <cstdint>

using AOTITorchError = int32_t;
using StableIValue = uint64_t;

extern "C" {

struct AtenTensorOpaque;
using AtenTensorHandle = AtenTensorOpaque*;
struct DeviceGuardOpaque;
using DeviceGuardHandle = DeviceGuardOpaque*;
struct StableListOpaque;
using StableListHandle = StableListOpaque*;
struct StreamOpaque;
using StreamHandle = StreamOpaque*;
struct StringOpaque;
using StringHandle = StringOpaque*;
struct TorchLibraryOpaque;
using TorchLibraryHandle = TorchLibraryOpaque*;

typedef void (*ParallelFunc)(int64_t begin, int64_t end, void* context);

AOTITorchError aoti_torch_aten_subtract_Tensor(
    AtenTensorHandle self, AtenTensorHandle other, double alpha, AtenTensorHandle* ret);
AOTITorchError aoti_torch_create_device_guard(int32_t index, DeviceGuardHandle* ret);
AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle guard);
AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle library);
AOTITorchError aoti_torch_delete_stream(StreamHandle stream);
AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
AOTITorchError aoti_torch_get_current_stream(int32_t device_index, StreamHandle* ret);
AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* ret);
AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* ret);
AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* ret);
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* ret);
AOTITorchError aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* ret);
AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* ret);
AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t dim, int64_t* ret);
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** ret);
AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* ret);
AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t dim, int64_t* ret);
AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** ret);
bool aoti_torch_grad_mode_is_enabled();
void aoti_torch_grad_mode_set_enabled(bool enabled);
AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* ret);
AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* ret);
AOTITorchError aoti_torch_library_def(TorchLibraryHandle self, const char* schema);
AOTITorchError aoti_torch_library_init_fragment(
    const char* name, const char* file, uint32_t line, TorchLibraryHandle* ret);
AOTITorchError aoti_torch_library_init_impl(
    const char* name, const char* key, const char* file, uint32_t line, TorchLibraryHandle* ret);
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* ret);
AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* ret);
AOTITorchError aoti_torch_scalar_to_tensor_bool(bool value, AtenTensorHandle* ret);
AOTITorchError aoti_torch_scalar_to_tensor_float64(double value, AtenTensorHandle* ret);
AOTITorchError aoti_torch_scalar_to_tensor_int64(int64_t value, AtenTensorHandle* ret);
AOTITorchError torch_call_dispatcher(
    const char* name, const char* overload, StableIValue* stack, uint64_t extension_build_version);
AOTITorchError torch_delete_list(StableListHandle list);
AOTITorchError torch_delete_string(StringHandle string);
AOTITorchError torch_from_blob(
    void* data,
    int64_t dims,
    const int64_t* sizes,
    const int64_t* strides,
    int64_t storage_offset,
    int32_t dtype,
    int32_t device_type,
    int32_t device_index,
    AtenTensorHandle* ret,
    int32_t layout,
    const uint8_t* opaque_metadata,
    int64_t opaque_metadata_size,
    void (*deleter)(void* data, void* context),
    void* context);
AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor, const void** ret);
AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** ret);
AOTITorchError torch_get_num_threads(uint32_t* ret);
AOTITorchError torch_get_thread_idx(uint32_t* ret);
AOTITorchError torch_library_impl(
    TorchLibraryHandle self,
    const char* name,
    void (*function)(StableIValue*, uint64_t, uint64_t),
    uint64_t extension_build_version);
AOTITorchError torch_list_get_item(StableListHandle list, size_t index, StableIValue* ret);
AOTITorchError torch_list_push_back(StableListHandle list, StableIValue element);
AOTITorchError torch_list_size(StableListHandle list, size_t* ret);
AOTITorchError torch_new_list_reserve_size(size_t size, StableListHandle* ret);
AOTITorchError torch_new_string_handle(const char* data, size_t length, StringHandle* ret);
AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain, ParallelFunc function, void* context);
AOTITorchError torch_parse_device_string(const char* text, uint32_t* ret_type, int32_t* ret_index);
AOTITorchError torch_set_requires_grad(AtenTensorHandle tensor, bool requires_grad);
AOTITorchError torch_string_c_str(StringHandle string, const char** ret);
AOTITorchError torch_string_length(StringHandle string, size_t* ret);

}  // extern "C"
