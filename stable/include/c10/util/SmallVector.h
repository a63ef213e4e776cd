#pragma once
#include <vector>
namespace c10 {
// For a few elements, but always on the heap.
template <class T, unsigned>
using SmallVector = std::vector<T>;
}  // namespace c10
