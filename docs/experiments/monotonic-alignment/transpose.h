// The one thing in this experiment that g++ does not vectorise by itself.
#pragma once

#include <cstdint>
#include <cstring>

namespace alignment {

// Four rows of four numbers, `row` apart, become four columns, `column` apart. Vector types of g++ and clang, so this
// is not for one processor only.
inline void transpose(const float* from, std::int64_t row, float* to, std::int64_t column) noexcept {
  using Four = float __attribute__((vector_size(16)));
  const auto load = [](const float* place) {
    Four four;
    std::memcpy(&four, place, sizeof four);
    return four;
  };
  const auto store = [](float* place, Four four) { std::memcpy(place, &four, sizeof four); };
  const Four a = load(from), b = load(from + row), c = load(from + 2 * row), d = load(from + 3 * row);
  const Four ab_left = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_right = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_left = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_right = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to, __builtin_shufflevector(ab_left, cd_left, 0, 1, 4, 5));
  store(to + column, __builtin_shufflevector(ab_left, cd_left, 2, 3, 6, 7));
  store(to + 2 * column, __builtin_shufflevector(ab_right, cd_right, 0, 1, 4, 5));
  store(to + 3 * column, __builtin_shufflevector(ab_right, cd_right, 2, 3, 6, 7));
}

// Only a hint: nothing happens if there is no memory.
inline void prefetch(const float* place) noexcept {
  __builtin_prefetch(place);
}

}  // namespace alignment
