// Whether libstdc++ is linked as torch links it. bootstrap.cpp checks the same of other modules.
#pragma once

#include <Python.h>

#include <dlfcn.h>

namespace interop {

// What std::ostream formats a number with. Null with another C++ library.
extern "C" void insert_number() __asm__("_ZNSo9_M_insertImEERSoT_") __attribute__((weak));

// Returns false with ImportError set if the library of the function `inside` has a copy of libstdc++ of its own.
inline bool require_shared_cxx_library(void (*inside)()) noexcept {
  Dl_info of_function, of_library;
  if (&insert_number == nullptr || dladdr(reinterpret_cast<void*>(&insert_number), &of_function) == 0 ||
      dladdr(reinterpret_cast<void*>(inside), &of_library) == 0 || of_function.dli_fbase != of_library.dli_fbase) {
    return true;
  }
  PyErr_Format(
      PyExc_ImportError,
      "torch-interop was built with a copy of libstdc++ of its own, in %s, and would crash beside torch's copy. The "
      "compiler linked it in: CXX or LDFLAGS has -static-libstdc++, or the compiler has no libstdc++.so. Rebuild "
      "torch-interop without that flag, or with another compiler, such as CXX=g++",
      of_library.dli_fname);
  return false;
}

}  // namespace interop
