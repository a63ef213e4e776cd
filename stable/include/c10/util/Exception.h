// The checks of torch's header of this name, with errors that are known to this module alone.
#pragma once

#include "interop/stable/errors.h"

#define INTEROP_CHECK(kind, condition, ...)                                               \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      ::interop::stable::raise(::interop::stable::Kind::kind __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                     \
  } while (false)
#define TORCH_CHECK(condition, ...) INTEROP_CHECK(runtime, condition, __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) INTEROP_CHECK(type, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) INTEROP_CHECK(value, condition, __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) INTEROP_CHECK(index, condition, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) INTEROP_CHECK(not_implemented, condition, __VA_ARGS__)
