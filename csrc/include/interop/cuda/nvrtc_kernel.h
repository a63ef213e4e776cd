// Launches a kernel that was compiled at run time (interop.cuda.compile), from C++ or Cython, without the GIL.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interop/check_memory.h"
#include "interop/convert.h"
#include "interop/cuda/check.h"
#include "interop/cuda/driver.h"
#include "interop/cuda/launch.h"
#include "interop/cuda/loaded_module.h"
#include "interop/cuda/parameter_type.h"
#include "interop/owned_ref.h"

namespace interop::cuda {

// The number of blocks in a grid, or of threads in a block.
struct Dim3 {
  int64_t x = 1, y = 1, z = 1;

  Dim3() = default;
  Dim3(int64_t x, int64_t y = 1, int64_t z = 1) noexcept : x(x), y(y), z(z) {}

  std::string describe() const {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  }
};

namespace detail {

// From a number, a tuple of up to three numbers, or a Dim3.
template <class A>
Dim3 to_dim3(const A& size) noexcept {
  if constexpr (CTuple<A>) {
    static_assert(!requires { size.f3; }, "a grid and a block must have at most three sizes");
    return interop::detail::with_fields(size, [](const auto&... field) {
      static_assert(
          (IntegralOrEnum<std::remove_cvref_t<decltype(field)>> && ...),
          "the sizes of a grid and a block must be ints");
      return Dim3(static_cast<int64_t>(field)...);
    });
  } else {
    static_assert(
        std::is_same_v<A, Dim3> || IntegralOrEnum<A>,
        "a grid and a block must be an int, a tuple of C ints, or a Dim3");
    return Dim3(size);
  }
}

// The state of a kernel, shared by all its copies on all threads.
class KernelState {
 public:
  // `handle` is an interop.cuda.Kernel. Needs the GIL.
  explicit KernelState(PyObject* handle) {
    const OwnedRef module = attribute(handle, "module"), parameters = attribute(handle, "parameters");
    name_ = text(attribute(handle, "name").get());
    arch_ = text(attribute(module.get(), "arch").get());
    if (parameters.get() != Py_None) {
      const OwnedRef items(checked(PySequence_Tuple(parameters.get())));
      parameters_.emplace();
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
        parameters_->emplace_back(text(PyTuple_GET_ITEM(items.get(), i)));
      }
    }
    for (int i = 0; i < max_arguments; ++i) {
      argument_names_[i] = std::to_string(i + 1) + " of " + name_;
    }
    module_ = loaded_module_of(module.get());
    kernel_ = module_->kernel(text(attribute(handle, "lowered_name").get()), name_);
  }

  static constexpr int max_arguments = 32;

  // Launches the kernel. `pointers` and `values` have room for one pointer for each of `arguments`.
  void launch(
      const Dim3& grid,
      const Dim3& block,
      size_t shared_bytes,
      LaunchArgument* arguments,
      const void** pointers,
      void** values,
      size_t count) {
    check_types(arguments, count);
    const at::TensorBase* first = check_tensors(arguments, count);
    check_sizes(grid, block, shared_bytes);
    Launch launch;
    launch = first ? Launch(*first) : Launch(c10::Device(c10::kCUDA));
    const Driver& cuda = driver();
    make_context_current(cuda);
    check_bytes(cuda, arguments, count);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
      return;  // as for a tensor without elements; CUDA returns an error
    }
    for (size_t i = 0; i < count; ++i) {
      if (arguments[i].tensor) {
        pointers[i] = pointer_of(*arguments[i].tensor, i);
        arguments[i].bytes = &pointers[i];
      }
      values[i] = const_cast<void*>(arguments[i].bytes);  // the driver only reads
    }
    const auto check = [&](int error) {
      if (error != Driver::success) {
        fail(error, explain(cuda.describe(error), grid, block, shared_bytes));
      }
    };
    if (shared_bytes > 0) {
      check(module_->allow_shared(kernel_, shared_bytes));
    }
    keep_if_capturing(cuda, launch.stream());
    check(cuda.LaunchKernel(
        kernel_, static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z),
        static_cast<unsigned>(block.x), static_cast<unsigned>(block.y), static_cast<unsigned>(block.z),
        static_cast<unsigned>(shared_bytes), launch.stream(), values, nullptr));
  }

 private:
  // "saxpy(float*, float const*, float, long)"
  std::string declaration() const {
    if (!parameters_) {
      return name_;
    }
    std::string types;
    for (const ParameterType& parameter : *parameters_) {
      types += (types.empty() ? "" : ", ") + parameter.type();
    }
    return name_ + "(" + types + ")";
  }

  void check_count(size_t taken, size_t count) const {
    TORCH_CHECK_TYPE(
        taken == count, "kernel ", declaration(), " takes ", taken, taken == 1 ? " argument" : " arguments", ", got ",
        count);
  }

  void check_types(const LaunchArgument* arguments, size_t count) const {
    if (!parameters_) {
      return;
    }
    check_count(parameters_->size(), count);
    for (size_t i = 0; i < count; ++i) {
      const ParameterType& parameter = (*parameters_)[i];
      if (arguments[i].tensor && !arguments[i].tensor->defined()) {
        continue;  // check_tensors() raises for it
      }
      TORCH_CHECK_TYPE(
          parameter.takes(arguments[i]), "argument ", i + 1, " of kernel ", declaration(), " must be ",
          parameter.type(), ", got ", arguments[i].describe(),
          arguments[i].number ? "; write its C type, such as <" + parameter.type() + ">x" : "");
    }
  }

  // Returns the first tensor. All others are on its device.
  const at::TensorBase* check_tensors(const LaunchArgument* arguments, size_t count) const {
    const at::TensorBase* first = nullptr;
    const char* first_name = nullptr;
    for (size_t i = 0; i < count; ++i) {
      const at::TensorBase* tensor = arguments[i].tensor;
      if (!tensor) {
        continue;
      }
      const char* name = argument_names_[i].c_str();
      check_device(*tensor, name);
      if (first) {
        check_same_device(*tensor, name, *first, first_name);
      } else {
        first = tensor;
        first_name = name;
      }
      interop::check_data(*tensor, name, Copes::with_any_device);
    }
    return first;
  }

  void check_sizes(const Dim3& grid, const Dim3& block, size_t shared_bytes) const {
    constexpr int64_t limit = std::numeric_limits<int32_t>::max();
    for (const int64_t size : {grid.x, grid.y, grid.z}) {
      TORCH_CHECK_VALUE(
          size >= 0 && size <= limit, "the grid of kernel ", name_, " must have from 0 to ", limit,
          " blocks in each dimension, got ", grid.describe());
    }
    for (const int64_t size : {block.x, block.y, block.z}) {
      TORCH_CHECK_VALUE(
          size >= 1 && size <= limit, "the block of kernel ", name_,
          " must have at least 1 thread in each dimension, got ", block.describe());
    }
    TORCH_CHECK_VALUE(
        shared_bytes <= static_cast<size_t>(limit), "shared_bytes of kernel ", name_, " must be from 0 to ", limit,
        ", got ", static_cast<int64_t>(shared_bytes));
  }

  // A thread that has not used the CUDA runtime yet has no context, and torch's guard does not give it one if the
  // device is already current.
  static void make_context_current(const Driver& cuda) {
    Driver::CUcontext context = nullptr;
    if (cuda.CtxGetCurrent(&context) == Driver::success && context) {
      return;
    }
    const int ordinal = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice().index();
    int device = 0;
    int error = cuda.DeviceGet(&device, ordinal);
    if (error == Driver::success) {
      error = cuda.DevicePrimaryCtxRetain(&context, device);
    }
    if (error == Driver::success) {
      error = cuda.CtxSetCurrent(context);
      cuda.DevicePrimaryCtxRelease(device);  // torch retains it too, for as long as it uses the device
    }
    if (error != Driver::success) {
      fail(error, "device cuda:" + std::to_string(ordinal) + " cannot be used: " + cuda.describe(error));
    }
  }

  // Compares the sizes with those in the compiled code. If the kernel's C++ name has no types, this is the only check.
  void check_bytes(const Driver& cuda, const LaunchArgument* arguments, size_t count) {
    std::call_once(sizes_once_, [&] {
      if (!cuda.KernelGetParamInfo) {
        return;
      }
      std::vector<size_t> sizes;
      for (;;) {
        size_t offset, size;
        const int error = cuda.KernelGetParamInfo(kernel_, sizes.size(), &offset, &size);
        if (error == Driver::invalid_value) {
          sizes_ = std::move(sizes);  // the index is past the last parameter
        }
        if (error != Driver::success) {
          return;
        }
        sizes.push_back(size);
      }
    });
    if (!sizes_) {
      return;
    }
    check_count(sizes_->size(), count);
    for (size_t i = 0; i < count; ++i) {
      TORCH_CHECK_TYPE(
          (*sizes_)[i] == arguments[i].size, "argument ", i + 1, " of kernel ", declaration(), " must have ",
          (*sizes_)[i], (*sizes_)[i] == 1 ? " byte" : " bytes", ", got ", arguments[i].describe(),
          "; write its C type, such as <float>x");
    }
  }

  const void* pointer_of(const at::TensorBase& tensor, size_t i) const {
    if (parameters_ && !(*parameters_)[i].writes()) {
      return tensor.const_data_ptr();
    }
    check_write(tensor, argument_names_[i].c_str());
    return tensor.mutable_data_ptr();
  }

  void keep_if_capturing(const Driver& cuda, Driver::CUstream stream) const {
    int status = Driver::stream_capture_status_none;
    // The default stream cannot be captured.
    if (stream && cuda.StreamIsCapturing(stream, &status) == Driver::success &&
        status != Driver::stream_capture_status_none) {
      module_->keep();
    }
  }

  std::string explain(const std::string& error, const Dim3& grid, const Dim3& block, size_t shared_bytes) const {
    return "CUDA error at the launch of " + name_ + " (compiled for " + arch_ + ") with grid " + grid.describe() +
           ", block " + block.describe() + ", " + std::to_string(shared_bytes) + " bytes of shared memory: " + error +
           perhaps_an_earlier_kernel;
  }

  std::string name_;
  std::string arch_;
  std::array<std::string, max_arguments> argument_names_;
  std::optional<std::vector<ParameterType>> parameters_;  // empty if the kernel's name has no types
  std::shared_ptr<LoadedModule> module_;
  Driver::CUkernel kernel_ = nullptr;
  std::once_flag sizes_once_;
  std::optional<std::vector<size_t>> sizes_;  // in bytes; empty if the driver does not report them
};

}  // namespace detail

// A kernel with its launch configuration. It borrows the kernel: call it in the expression that makes it.
class Launcher {
 public:
  Launcher() = default;
  Launcher(detail::KernelState* kernel, const Dim3& grid, const Dim3& block, size_t shared_bytes) noexcept
      : kernel_(kernel), grid_(grid), block_(block), shared_bytes_(shared_bytes) {}

  template <class... A>
  void operator()(const A&... argument) const {
    constexpr size_t count = sizeof...(A);
    static_assert(count <= detail::KernelState::max_arguments, "a kernel can have at most 32 arguments here");
    TORCH_CHECK(kernel_, "a Kernel must be made from a handle, Kernel(module['name']), before it is launched");
    LaunchArgument arguments[count + 1] = {LaunchArgument::of(argument)...};
    const void* pointers[count + 1];
    void* values[count + 1];
    kernel_->launch(grid_, block_, shared_bytes_, arguments, pointers, values, count);
  }

 private:
  detail::KernelState* kernel_ = nullptr;
  Dim3 grid_, block_;
  size_t shared_bytes_ = 0;
};

// A compiled kernel, which keeps its code loaded. Copies are cheap and share everything; several threads may launch
// it at the same time.
class Kernel {
 public:
  Kernel() = default;

  // From an interop.cuda.Kernel, whose module it loads on first use. Needs the GIL.
  explicit Kernel(PyObject* handle) {
    const OwnedRef module(checked(PyImport_ImportModule("interop.cuda")));
    const OwnedRef type = detail::attribute(module.get(), "Kernel");
    TORCH_CHECK_TYPE(
        PyType_Check(type.get()) && PyObject_TypeCheck(handle, reinterpret_cast<PyTypeObject*>(type.get())),
        "a Kernel must be made from an interop.cuda.Kernel, such as interop.cuda.compile(source)['name'], got ",
        Py_TYPE(handle)->tp_name);
    state_ = std::make_shared<detail::KernelState>(handle);
  }

  // kernel.launch(grid, block)(arguments) is kernel<<<grid, block>>>(arguments). It runs on the device of the tensor
  // arguments, or on the current one if there are none, and on the current stream of that device.
  template <class G, class B>
  Launcher launch(const G& grid, const B& block, size_t shared_bytes = 0) const noexcept {
    return {state_.get(), detail::to_dim3(grid), detail::to_dim3(block), shared_bytes};
  }

 private:
  std::shared_ptr<detail::KernelState> state_;
};

}  // namespace interop::cuda
