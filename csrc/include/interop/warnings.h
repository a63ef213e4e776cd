// TORCH_WARN inside a call becomes a Python warning.
//
// torch prints a warning to stderr unless a handler is set on the thread, and its own handler for Python throws from
// the destructor, which Cython cannot catch. WarningScope splits that in two: it collects (without the GIL), and emit()
// hands over (with the GIL) and reports as any function does when a warnings filter turns a warning into an exception.
#pragma once

#include <Python.h>

#include <c10/util/Exception.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "interop/exceptions.h"

namespace interop {

namespace detail {

// Holds warnings back. Once closed, it passes them on to the handler before it.
class WarningBuffer : public c10::WarningHandler {
 public:
  explicit WarningBuffer(c10::WarningHandler* handler) noexcept : previous(handler) {}

  void process(const c10::Warning& warning) override {
    if (closed_.load(std::memory_order_acquire)) {
      previous->process(warning);
    } else {
      warnings.push_back(warning);
    }
  }

  void close() noexcept {
    closed_.store(true, std::memory_order_release);
  }

  c10::WarningHandler* previous;
  std::vector<c10::Warning> warnings;

 private:
  std::atomic<bool> closed_{false};
};

// One warning to Python's warnings module, located as torch locates it. False if it became an exception, which is set.
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

// Collects the warnings of this thread for as long as it lives. Scopes nest.
class WarningScope {
 public:
  WarningScope() : buffer_(std::make_unique<detail::WarningBuffer>(c10::WarningUtils::get_warning_handler())) {
    c10::WarningUtils::set_warning_handler(buffer_.get());
  }
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;

  // What was not emitted, because an exception ended the function first or emit() was forgotten, goes where it would
  // have gone without a scope. It cannot become a Python warning here: a filter could make that an exception, beside
  // the one that is in flight or behind a function that has already returned its value.
  ~WarningScope() {
    std::vector<c10::Warning> left;
    left.swap(buffer_->warnings);
    if (!unlink()) {
      // Another thread's handlers, or one that is not ours, still lead here, so the buffer must stay.
      buffer_->close();
      static_cast<void>(buffer_.release());
    }
    for (const c10::Warning& warning : left) {
      try {
        c10::WarningUtils::get_warning_handler()->process(warning);
      } catch (...) {
      }
    }
  }

  // Emits what has been collected as Python warnings, in order. Needs the GIL. Throws PythonError where a filter says
  // "error"; the warnings after that one are dropped, as in Python.
  void emit() {
    std::vector<c10::Warning> warnings;
    warnings.swap(buffer_->warnings);
    for (const c10::Warning& warning : warnings) {
      if (!detail::emit_warning(warning)) {
        throw PythonError();
      }
    }
  }

 private:
  // Takes the buffer out of this thread's handlers: from the top, or from under a scope that began later and lives on,
  // as when generators hold scopes. False if it is not among them.
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
