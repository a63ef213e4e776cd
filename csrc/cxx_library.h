// Whether this package uses the copy of libstdc++ that torch uses. bootstrap.cpp checks the same of other modules.
#pragma once

#include <Python.h>

#include <dlfcn.h>

namespace interop {

// Returns false with ImportError set if the library that calls this uses another copy than torch.
inline bool require_cxx_library_of_torch() noexcept {
  constexpr const char* reader_of_tables = "_ZNKSt6locale2id5_M_idEv";
  void* torch = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  void* theirs = torch != nullptr ? dlsym(torch, reader_of_tables) : nullptr;
  void* ours = dlsym(RTLD_DEFAULT, reader_of_tables);  // searches the caller's library and those that it is linked to
  if (torch != nullptr) {
    dlclose(torch);
  }
  Dl_info found;
  if (theirs == nullptr || ours == nullptr || ours == theirs || dladdr(ours, &found) == 0) {
    return true;
  }
  PyErr_Format(
      PyExc_ImportError,
      "torch-interop uses a copy of libstdc++ of its own, in %s, and may crash beside torch's copy. The compiler has "
      "no "
      "libstdc++.so, or adds -static-libstdc++, as LDFLAGS may do as well. Rebuild torch-interop without that flag, or "
      "with another compiler, such as CXX=g++",
      found.dli_fname);
  return false;
}

}  // namespace interop
