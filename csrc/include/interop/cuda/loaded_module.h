// A compiled module in the driver: loaded once for all devices, and unloaded when its last owner is gone.
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
#include "interop/free_threading.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"

namespace interop::cuda {

namespace detail {

// Allows calls of the driver, within a scope, that another thread's capture of a CUDA graph would forbid.
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

class LoadedModule {
 public:
  // `code` is a cubin, or PTX with a terminating zero; the driver copies it.
  LoadedModule(const char* code, const std::string& name, const std::string& arch) : arch_(arch) {
    const Driver& cuda = driver();
    const detail::RelaxedCapture relaxed(cuda);
    std::string log(4096, '\0');
    int options[] = {Driver::jit_error_log_buffer, Driver::jit_error_log_buffer_size_bytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    const int error = cuda.LibraryLoadData(&library_, code, options, values, 2, nullptr, nullptr, 0);
    if (error != Driver::success) {
      log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
      // One line, as all messages of ours.
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
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  // Runs on any thread, with or without the GIL.
  ~LoadedModule() {
    // When Python has ended, the process soon ends too. The driver frees everything then, and may have begun.
    if (kept_ || !Py_IsInitialized()) {
      return;
    }
    const NoGil no_gil;  // unloading may wait for work on the GPU, which may wait for Python code
    const Driver& cuda = driver();
    const detail::RelaxedCapture relaxed(cuda);
    cuda.LibraryUnload(library_);
  }

  // A kernel must request more than 48 KB of shared memory per block, once for each device. This function does so
  // from the first byte on, because the memory that the kernel declares counts as well. The driver's setting applies
  // to the kernel, whichever caller launches it.
  int allow_shared(Driver::CUkernel kernel, size_t bytes) {
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

  // Keeps the module loaded for good: a CUDA graph has captured a launch, and nothing reports the end of the graph.
  void keep() noexcept {
    kept_ = true;
  }

  Driver::CUkernel kernel(const std::string& lowered_name, const std::string& name) const {
    const Driver& cuda = driver();
    Driver::CUkernel found = nullptr;
    if (const int error = cuda.LibraryGetKernel(&found, library_, lowered_name.c_str())) {
      fail(error, "kernel " + name + ", compiled for " + arch_ + ", cannot be found: " + cuda.describe(error));
    }
    return found;
  }

 private:
  std::string arch_;
  Driver::CUlibrary library_ = nullptr;
  std::atomic<bool> kept_ = false;
  std::mutex shared_mutex_;
  std::map<std::pair<Driver::CUkernel, int>, size_t> shared_allowed_;
};

namespace detail {

// Needs the GIL. Python's exception propagates.
inline OwnedRef attribute(PyObject* object, const char* name) {
  return OwnedRef(checked(PyObject_GetAttrString(object, name)));
}

inline std::string text(PyObject* object) {
  Py_ssize_t size;
  const char* characters = checked(PyUnicode_AsUTF8AndSize(object, &size));
  return {characters, static_cast<size_t>(size)};
}

// The attribute in which an interop.cuda.Module keeps its LoadedModule, for all kernels taken from it. Each change of
// LoadedModule changes the name, so that modules built with another version load one of their own.
constexpr const char* loaded_module_attribute = "_loaded_module_1";

// Null if the module has none yet.
inline std::shared_ptr<LoadedModule> find_loaded_module(PyObject* module) {
  const OwnedRef dict = attribute(module, "__dict__");
  const SharedRef capsule = dict_item(dict.get(), loaded_module_attribute);
  if (!capsule) {
    return nullptr;
  }
  return *static_cast<std::shared_ptr<LoadedModule>*>(
      checked(PyCapsule_GetPointer(capsule.get(), loaded_module_attribute)));
}

// The LoadedModule of an interop.cuda.Module, loaded now if necessary. Needs the GIL; releases it while loading.
inline std::shared_ptr<LoadedModule> loaded_module_of(PyObject* module) {
  if (auto found = find_loaded_module(module)) {
    return found;
  }
  const OwnedRef code = attribute(module, "code");
  const char* bytes = checked(PyBytes_AsString(code.get()));
  const std::string name = text(attribute(module, "name").get()), arch = text(attribute(module, "arch").get());
  std::shared_ptr<LoadedModule> loaded;
  {
    const NoGil no_gil;
    loaded = std::make_shared<LoadedModule>(bytes, name, arch);
  }
  if (auto found = find_loaded_module(module)) {  // another thread was faster
    return found;
  }
  auto holder = std::make_unique<std::shared_ptr<LoadedModule>>(loaded);
  const OwnedRef capsule(checked(PyCapsule_New(holder.get(), loaded_module_attribute, [](PyObject* self) {
    delete static_cast<std::shared_ptr<LoadedModule>*>(PyCapsule_GetPointer(self, loaded_module_attribute));
  })));
  holder.release();
  checked(PyObject_SetAttrString(module, loaded_module_attribute, capsule.get()));
  return loaded;
}

}  // namespace detail

}  // namespace interop::cuda
