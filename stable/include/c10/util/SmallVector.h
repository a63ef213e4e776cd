#pragma once
#include <vector>
namespace c10 {
// Of a few elements; the heap is used at once.
template <class T, unsigned>
using SmallVector = std::vector<T>;
}  // namespace c10
