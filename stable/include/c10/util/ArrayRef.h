// Borrowed memory: torch's own class, from its headers that need no library.
#pragma once

#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

#include <cstdint>

namespace c10 {
template <class T>
using ArrayRef = HeaderOnlyArrayRef<T>;
using IntArrayRef = ArrayRef<int64_t>;
}  // namespace c10

namespace at {
using namespace c10;
}
