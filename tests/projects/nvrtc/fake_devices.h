// Eight CUDA devices that do not exist, for torch, and tensors "on" them whose memory is the host's. With the driver of
// fake_driver.c, a kernel's launch can be seen to the last byte on a machine without a GPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/FakeGuardImpl.h>

#include <cstdint>

namespace fake {

using Devices = c10::impl::FakeGuardImpl<c10::DeviceType::CUDA>;

// c10's own, which cannot be derived from, has no handles of streams.
class DevicesWithHandles final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override {
    return c10::DeviceType::CUDA;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    return devices_.exchangeDevice(device);
  }
  c10::Device getDevice() const override {
    return devices_.getDevice();
  }
  void setDevice(c10::Device device) const override {
    devices_.setDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    devices_.uncheckedSetDevice(device);
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return devices_.getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return devices_.exchangeStream(stream);
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return devices_.deviceCount();
  }
  // NULL is the default stream, as CUDA's.
  // Not declared `override`: torch 2.10 has no such function.
  void* getStreamNativeHandle(const c10::Stream stream) const {
    return reinterpret_cast<void*>(stream.id() == 0 ? 0 : stream.device_index() * 1000 + stream.id());
  }

 private:
  Devices devices_;
};

inline void install() {
  static const DevicesWithHandles devices;
  c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::DeviceType::CUDA)].store(&devices);
}

inline void set_stream(int device, int64_t id) {
  const c10::Device on(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
  DevicesWithHandles().exchangeStream(c10::Stream(c10::Stream::UNSAFE, on, id));
}

inline int current_device() {
  return Devices::getDeviceIndex();
}

// Shares the memory of a tensor on the CPU, and keeps it.
inline at::Tensor on_device(const at::Tensor& tensor, int device) {
  const c10::Device on(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
  c10::DataPtr data(
      tensor.storage().mutable_data(), new at::Tensor(tensor),
      [](void* kept) { delete static_cast<at::Tensor*>(kept); }, on);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(), std::move(data), nullptr, false);
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CUDA), tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return made;
}

// As resize_() of the storage would leave it.
inline void cut(const at::Tensor& tensor) {
  tensor.storage().unsafeGetStorageImpl()->set_nbytes(size_t{4});
}

}  // namespace fake
