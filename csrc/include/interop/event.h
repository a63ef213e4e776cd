// c10::Event in a form that Cython can hold in a local variable.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <memory>
#include <optional>

#include "interop/device_guard.h"
#include "interop/stream.h"

namespace interop {

// A mark in a stream that other streams can wait for. The first record() makes the event itself. So an object for any
// type of device can be made with every build of torch, and an object without a type takes that of the stream.
//
// On the CPU, where a call returns when its work is done, an event is complete as soon as it is recorded. It has no
// time there.
class Event {
 public:
  Event() noexcept = default;
  explicit Event(c10::DeviceType type, c10::EventFlag flag = c10::EventFlag::PYTORCH_DEFAULT) noexcept
      : type_(type), flag_(flag) {}

  // Marks the work that is queued on the stream so far. Another call replaces the mark.
  void record(const Stream& stream) {
    const c10::Stream on = stream;
    detail::devices_of(on, "an event cannot be recorded");
    TORCH_CHECK_VALUE(
        !type_ || *type_ == on.device_type(), "an event for ", *type_, " cannot be recorded on a stream of ",
        on.device());
    TORCH_CHECK_VALUE(
        device_index() == -1 || device_index() == on.device_index(), "an event that was recorded on ", device(),
        " cannot be recorded on a stream of ", on.device(), "; make another one");
    if (!detail::is_host(on.device_type())) {
      if (!event_) {
        event_ = std::make_unique<c10::Event>(on.device_type(), flag_);
      }
      event_->record(on);
    }
    type_ = on.device_type();
    recorded_ = true;
  }
  void recordOnce(const Stream& stream) {
    if (!recorded_) {
      record(stream);
    }
  }

  // Work queued on the stream from now on waits for the event. It does not wait if the event was never recorded.
  void block(const Stream& stream) const {
    const c10::Stream on = stream;
    if (recorded_) {
      TORCH_CHECK_VALUE(
          *type_ == on.device_type(), "a stream of ", on.device(), " cannot wait for an event of ", *type_);
      detail::devices_of(on, "a stream cannot wait for an event");
    }
    if (event_) {
      event_->block(on);
    }
  }

  // Whether the marked work is done. True if the event was never recorded.
  bool query() const {
    return !event_ || event_->query();
  }
  void synchronize() const {
    if (event_) {
      event_->synchronize();
    }
  }

  // Milliseconds from this event to the other.
  double elapsedTime(const Event& other) const {
    TORCH_CHECK_VALUE(
        flag_ == c10::EventFlag::BACKEND_DEFAULT && other.flag_ == c10::EventFlag::BACKEND_DEFAULT,
        "both events must be made with timing: Event(type, EventFlag.BACKEND_DEFAULT)");
    TORCH_CHECK_VALUE(
        recorded_ && other.recorded_, "both events must be recorded before the time between them is requested");
    TORCH_CHECK_NOT_IMPLEMENTED(event_ && other.event_, "an event on the CPU has no time; measure with a clock");
    return event_->elapsedTime(*other.event_);
  }

  // The stream's device; without an index before the first record().
  c10::Device device() const {
    return event_ ? event_->device() : c10::Device(device_type());
  }
  c10::DeviceType device_type() const {
    TORCH_CHECK_VALUE(type_, "the event has no device type yet; record it, or make it with Event(type)");
    return *type_;
  }
  c10::DeviceIndex device_index() const noexcept {
    return event_ ? event_->device_index() : c10::DeviceIndex{-1};
  }
  c10::EventFlag flag() const noexcept {
    return flag_;
  }
  bool was_marked_for_recording() const noexcept {
    return recorded_;
  }
  // The backend's handle of the event: a cudaEvent_t for CUDA. Null before the first record().
  void* eventId() const noexcept {
    return event_ ? event_->eventId() : nullptr;
  }

 private:
  std::optional<c10::DeviceType> type_;
  c10::EventFlag flag_ = c10::EventFlag::PYTORCH_DEFAULT;
  bool recorded_ = false;
  // Not a std::optional: g++ 12 warns of an uninitialised value when one is moved.
  std::unique_ptr<c10::Event> event_;
};

}  // namespace interop
