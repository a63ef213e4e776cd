// The exception handler of a module for many releases of torch. stable/errors.h defines the exceptions.
#pragma once

#include <Python.h>

#include <string_view>

#include "interop/callback.h"
#include "interop/python_error.h"
#include "interop/stable/errors.h"
#include "interop/stable/shim.h"

namespace interop {

namespace detail {

// Sets the Python error of a failed call of torch's C interface: the text and the function of a ShimError.
__attribute__((cold)) void set_error_of_shim(std::string_view text, std::string_view function);

}  // namespace detail

// Call it in a catch block, with the GIL held. On return one Python error is set; an error that was already set is
// kept.
__attribute__((cold)) void translate_exception() noexcept;

}  // namespace interop
