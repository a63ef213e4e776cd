// Errors of functions written in Cython, on their way through torch.
#pragma once

#include <exception>

#include "interop/callback.h"
#include "interop/gil.h"
#include "interop/runtime.h"

namespace interop {

// Throws the error of `call`, if there is one, as torch's python_error, which torch hands on to its caller in Python.
inline void raise_if_failed(Callback& call) {
  if (call.failed()) [[unlikely]] {
    Gil gil;
    call.take().restore();
    std::rethrow_exception(runtime().take_python_error());
  }
}

}  // namespace interop
