// Eight CUDA devices that only record what is requested from them. Register them in a process of their own.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/FakeGuardImpl.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace fake {

inline std::vector<std::string>& written() {
  static std::vector<std::string> lines;
  return lines;
}

template <class... Words>
void write(const Words&... words) {
  std::ostringstream line;
  ((line << words << ' '), ...);
  written().push_back(line.str().substr(0, line.str().size() - 1));
}

// c10's own fake keeps the current device and the current streams.
class Devices final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override {
    return c10::kCUDA;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    return state_.exchangeDevice(device);
  }
  c10::Device getDevice() const override {
    return state_.getDevice();
  }
  void setDevice(c10::Device device) const override {
    state_.setDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    state_.uncheckedSetDevice(device);
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return state_.deviceCount();
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    write("synchronize device", int{index});
  }

  c10::Stream getStream(c10::Device device) const override {
    return state_.getStream(device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, high_priority ? 200 : 100);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return state_.exchangeStream(stream);
  }
  // Not declared `override`: torch 2.10 has no such function.
  void* getStreamNativeHandle(c10::Stream stream) const {
    return reinterpret_cast<void*>(static_cast<intptr_t>(1000 * stream.device_index() + stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return stream.id() == 0;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    write("synchronize", stream.device(), stream.id());
  }
  bool isStreamCapturing(const c10::Stream& stream) const {  // overrides torch's since 2.12
    return stream.id() == 200;
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    write(data ? "record data" : "record null", stream.device(), stream.id());
  }

  // An event is the number of times that it was recorded.
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag flag) const override {
    if (*event == nullptr) {
      *event = new int(0);
    }
    ++*static_cast<int*>(*event);
    write(
        "record", stream.device(), stream.id(),
        flag == c10::EventFlag::BACKEND_DEFAULT ? "with a time" : "without one");
  }
  void block(void* event, const c10::Stream& stream) const override {
    write("block", stream.device(), stream.id(), *static_cast<int*>(event));
  }
  bool queryEvent(void* event) const override {
    return *static_cast<int*>(event) > 0;
  }
  void synchronizeEvent(void* event) const override {
    write("synchronize event", *static_cast<int*>(event));
  }
  double elapsedTime(void* event, void* other, c10::DeviceIndex) const override {
    return *static_cast<int*>(other) - *static_cast<int*>(event);
  }
  void destroyEvent(void* event, c10::DeviceIndex index) const noexcept override {
    write("destroy event", int{index});
    delete static_cast<int*>(event);
  }

 private:
  c10::impl::FakeGuardImpl<c10::kCUDA> state_;
};

class Allocator final : public c10::DeviceAllocator {
 public:
  bool initialized() override {
    return used;
  }
  void emptyCache(c10::MempoolId_t) override {
    write("empty cache");
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].increase(100 + index);
    stats.reserved_bytes[1].increase(200 + index);
    stats.num_ooms = 300 + index;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    write("reset accumulated", int{index});
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    write("reset peak", int{index});
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    return {400 + index, 500 + index};
  }
  c10::DataPtr allocate(size_t) override {
    return {};
  }
  void copy_data(void*, const void*, std::size_t) const override {}

  bool used = false;
};

inline Allocator& allocator() {
  static Allocator instance;
  return instance;
}

inline void enable() {
  c10::impl::registerDeviceGuard(c10::kCUDA, new Devices);
  c10::SetAllocator(c10::kCUDA, &allocator(), 1);
}

// What torch itself registers where it is built with CUDA and finds no device.
inline void enable_stand_in() {
  c10::impl::registerDeviceGuard(c10::kCUDA, new c10::impl::FakeGuardImpl<c10::kCUDA>);
}

inline void use_allocator() {
  allocator().used = true;
}

}  // namespace fake
