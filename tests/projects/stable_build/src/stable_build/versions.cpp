#include "versions.h"

#include <Python.h>

#include <dlfcn.h>
#include <torch/csrc/stable/c/shim.h>

// As the facade's headers note it for `python -m interop doctor`.
[[gnu::used]] static const char note[] = "torch-interop stable abi: torch>=" INTEROP_STABLE ", " INTEROP_LIMITED_API;

uint64_t target_of_the_other_source() {
  return TORCH_TARGET_VERSION;
}

uint64_t running_abi() {
  void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  auto version =
      torch ? reinterpret_cast<decltype(&aoti_torch_abi_version)>(dlsym(torch, "aoti_torch_abi_version")) : nullptr;
  if (version == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "torch is not in the process");
    return 0;
  }
  return version();
}
