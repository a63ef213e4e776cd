// A compiled module in the driver: loaded once for all devices, unloaded when nobody can launch its kernels any more.
#pragma once

#include <Python.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "interop/cuda/driver.h"
#include "interop/exceptions.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"

namespace interop::cuda {

namespace detail {

// For a scope in which the driver is asked for what another thread's capture of a CUDA graph would forbid.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) noexcept : driver_(driver) {
    driver_.ThreadExchangeStreamCaptureMode(&mode_);
  }
  ~RelaxedCapture() {
    driver_.ThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = Driver::stream_capture_mode_relaxed;
};

}  // namespace detail

class Library {
 public:
  // `code` is a cubin, or PTX that ends with a zero; the driver copies it.
  Library(const char* code, const std::string& name, const std::string& arch) : arch_(arch) {
    const Driver& cuda = driver();
    const detail::RelaxedCapture relaxed(cuda);
    std::string log(4096, '\0');
    int options[] = {Driver::jit_error_log_buffer, Driver::jit_error_log_buffer_size_bytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    const int error = cuda.LibraryLoadData(&library_, code, options, values, 2, nullptr, nullptr, 0);
    if (error != Driver::success) {
      log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
      // Exceptions keep their first line only.
      for (char& character : log) {
        character = character == '\n' ? ' ' : character;
      }
      fail(
          error,
          "module " + name + ", compiled for " + arch + ", cannot be loaded: " + cuda.describe(error) +
              (log.empty() ? "" : ": " + log) +
              (arch.starts_with("compute") ? "; the driver may be older than the compiler: compile for sm_N instead"
                                           : ""));
    }
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // On any thread, with the GIL or without.
  ~Library() {
    // When Python has ended, the process does soon, and the driver frees all by itself: it may have begun.
    if (kept_ || !Py_IsInitialized()) {
      return;
    }
    const NoGil no_gil;  // it may wait for work on the GPU, which may wait for a function of Python's
    const Driver& cuda = driver();
    const detail::RelaxedCapture relaxed(cuda);
    cuda.LibraryUnload(library_);
  }

  // More than 48 KB a block must be asked for, once for a kernel and a device. Here from the first byte on, since the
  // memory that the kernel declares counts as well. The driver's setting is the kernel's, whoever launches it.
  int allow_shared(Driver::Kernel kernel, size_t bytes) {
    const Driver& cuda = driver();
    int device = 0;
    if (const int error = cuda.CtxGetDevice(&device)) {
      return error;
    }
    const std::lock_guard lock(shared_mutex_);
    size_t& allowed = shared_allowed_[{kernel, device}];
    if (bytes > allowed) {
      if (const int error = cuda.KernelSetAttribute(
              Driver::function_max_dynamic_shared_size_bytes, static_cast<int>(bytes), kernel, device)) {
        return error;
      }
      allowed = bytes;
    }
    return Driver::success;
  }

  // Never to be unloaded: a CUDA graph has captured a launch, and nobody says when the graph is gone.
  void keep() noexcept {
    kept_ = true;
  }

  Driver::Kernel kernel(const std::string& lowered_name, const std::string& name) const {
    const Driver& cuda = driver();
    Driver::Kernel found = nullptr;
    if (const int error = cuda.LibraryGetKernel(&found, library_, lowered_name.c_str())) {
      fail(error, "kernel " + name + ", compiled for " + arch_ + ", cannot be had: " + cuda.describe(error));
    }
    return found;
  }

 private:
  std::string arch_;
  Driver::Library library_ = nullptr;
  std::atomic<bool> kept_ = false;
  std::mutex shared_mutex_;
  std::map<std::pair<Driver::Kernel, int>, size_t> shared_allowed_;
};

namespace detail {

// With the GIL; raises what Python raised.
inline OwnedRef attribute(PyObject* object, const char* name) {
  return OwnedRef(checked(PyObject_GetAttrString(object, name)));
}

inline std::string text(PyObject* object) {
  Py_ssize_t size;
  const char* characters = PyUnicode_AsUTF8AndSize(object, &size);
  if (!characters) {
    throw PythonError();
  }
  return {characters, static_cast<size_t>(size)};
}

// Under this name an interop.cuda.Module keeps the library once it is loaded, for all that take kernels from it.
// Changes of Library change the name: modules that were built with another version then load one of their own.
constexpr const char* library_attribute = "_library_2";

// Nothing if the module has none yet.
inline std::shared_ptr<Library> loaded_library(PyObject* module) {
  const OwnedRef dict = attribute(module, "__dict__");
  PyObject* capsule = PyDict_GetItemString(dict.get(), library_attribute);
  if (!capsule) {
    return nullptr;
  }
  void* found = PyCapsule_GetPointer(capsule, library_attribute);
  if (!found) {
    throw PythonError();
  }
  return *static_cast<std::shared_ptr<Library>*>(found);
}

// The library of an interop.cuda.Module, loaded now if need be. With the GIL, which is given up meanwhile.
inline std::shared_ptr<Library> library_of(PyObject* module) {
  if (auto found = loaded_library(module)) {
    return found;
  }
  const OwnedRef code = attribute(module, "code");
  const char* bytes = PyBytes_AsString(code.get());
  if (!bytes) {
    throw PythonError();
  }
  const std::string name = text(attribute(module, "name").get()), arch = text(attribute(module, "arch").get());
  std::shared_ptr<Library> library;
  {
    const NoGil no_gil;
    library = std::make_shared<Library>(bytes, name, arch);
  }
  if (auto found = loaded_library(module)) {  // another thread was faster
    return found;
  }
  auto holder = std::make_unique<std::shared_ptr<Library>>(library);
  const OwnedRef capsule(checked(PyCapsule_New(holder.get(), library_attribute, [](PyObject* self) {
    delete static_cast<std::shared_ptr<Library>*>(PyCapsule_GetPointer(self, library_attribute));
  })));
  holder.release();
  if (PyObject_SetAttrString(module, library_attribute, capsule.get()) != 0) {
    throw PythonError();
  }
  return library;
}

}  // namespace detail

}  // namespace interop::cuda
