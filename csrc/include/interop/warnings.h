// TORCH_WARN inside a call becomes a Python warning.
//
// torch prints a warning to stderr unless a handler is set on the thread. Its own handler for Python throws from the
// destructor, which Cython cannot catch. WarningScope splits the work in two: the scope collects warnings without the
// GIL, and emit() passes them to Python with the GIL. If a warnings filter turns a warning into an exception, emit()
// reports it as any function does.
#pragma once

#include <Python.h>

#include <c10/util/Exception.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "interop/exceptions.h"

namespace interop {

namespace detail {

// Holds warnings back. After close(), it passes them on to the previous handler. Another thread may end the scope, as
// when it drops the last reference to a generator.
class WarningBuffer : public c10::WarningHandler {
 public:
  explicit WarningBuffer(c10::WarningHandler* handler) noexcept : previous(handler) {}

  void process(const c10::Warning& warning) override {
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) {
        warnings_.push_back(warning);
        return;
      }
    }
    previous->process(warning);
  }

  std::vector<c10::Warning> take() noexcept {
    const std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
  }

  void close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

  c10::WarningHandler* previous;

 private:
  std::mutex mutex_;
  std::vector<c10::Warning> warnings_;
  bool closed_ = false;
};

// Passes a warning to Python's warnings module, with the location that torch gives. False if it became an exception,
// which is set.
inline bool emit_warning(const c10::Warning& warning) {
  PyObject* category = std::holds_alternative<c10::Warning::DeprecationWarning>(warning.type())
                           ? PyExc_DeprecationWarning
                           : PyExc_UserWarning;
  const auto& where = warning.source_location();
  if (where.file != nullptr && warning.verbatim()) {
    return PyErr_WarnExplicit(
               category, warning.msg().c_str(), where.file, static_cast<int>(where.line), nullptr, nullptr) == 0;
  }
  std::string message = warning.msg();
  if (where.file != nullptr) {
    message += " (Triggered internally at " + std::string(where.file) + ":" + std::to_string(where.line) + ".)";
  }
  return PyErr_WarnEx(category, message.c_str(), 1) == 0;
}

}  // namespace detail

// Collects this thread's warnings for its lifetime. Scopes nest.
class WarningScope {
 public:
  WarningScope() : buffer_(std::make_unique<detail::WarningBuffer>(c10::WarningUtils::get_warning_handler())) {
    c10::WarningUtils::set_warning_handler(buffer_.get());
  }
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;

  // Warnings remain here if an exception ended the function first, or if emit() was forgotten. They go to the handler
  // that would have received them without a scope. They cannot become Python warnings: a filter could turn one into
  // an exception, beside the one in flight or after the function has already returned its value.
  ~WarningScope() {
    const bool unlinked = unlink();
    if (!unlinked) {
      buffer_->close();
    }
    const std::vector<c10::Warning> left = buffer_->take();
    if (!unlinked) {
      // Another thread's handlers, or one that is not ours, still refer to the buffer, so it must stay.
      static_cast<void>(buffer_.release());
    }
    for (const c10::Warning& warning : left) {
      try {
        c10::WarningUtils::get_warning_handler()->process(warning);
      } catch (...) {
      }
    }
  }

  // Emits the collected warnings as Python warnings, in order. Needs the GIL. Throws PythonError if a filter says
  // "error"; the warnings after that one are dropped, as in Python.
  void emit() {
    for (const c10::Warning& warning : buffer_->take()) {
      if (!detail::emit_warning(warning)) {
        throw PythonError();
      }
    }
  }

 private:
  // Removes the buffer from this thread's handlers: from the top, or from under a scope that began later and still
  // exists, as when generators hold scopes. False if it is not among them.
  bool unlink() noexcept {
    c10::WarningHandler* handler = c10::WarningUtils::get_warning_handler();
    if (handler == buffer_.get()) {
      c10::WarningUtils::set_warning_handler(buffer_->previous);
      return true;
    }
    while (auto* later = dynamic_cast<detail::WarningBuffer*>(handler)) {
      if (later->previous == buffer_.get()) {
        later->previous = buffer_->previous;
        return true;
      }
      handler = later->previous;
    }
    return false;
  }

  std::unique_ptr<detail::WarningBuffer> buffer_;
};

}  // namespace interop
