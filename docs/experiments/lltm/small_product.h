// Matrix products in which one side is as short as a batch, as they come up in a recurrent cell.
//
// A general product first copies both matrices into blocks, which pays when each element is then used many times. With
// a short batch the weights are used so little that they are better read where they lie. So this is one loop around
// multiply-add instructions: `rows` numbers of A times one vector of B, into as many vectors of C, which stay in
// registers.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "interop/instruction_sets.h"

namespace lltm {

// C = A B + start. A is read by two strides, so it may be transposed; the elements of a row of B and C lie side by
// side.
template <class T>
struct Product {
  int64_t rows, columns, inner;
  const T* a;
  int64_t a_row, a_inner;
  const T* b;
  int64_t b_inner;
  const T* start;  // one number for each row of C, or null
  T* c;
  int64_t c_row;
};

// R rows of C by as many columns as V holds, from row i and column j. V may be T itself.
template <int R, class V, class T>
[[gnu::always_inline]] inline void tile(const Product<T>& p, int64_t i, int64_t j) {
  V sum[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    sum[r] = V{} + (p.start ? p.start[i + r] : T(0));
  }
  const T* a = p.a + i * p.a_row;
  const T* b = p.b + j;
  for (int64_t k = 0; k < p.inner; ++k) {
    V value;
    std::memcpy(&value, b + k * p.b_inner, sizeof(V));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      sum[r] += a[r * p.a_row + k * p.a_inner] * value;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    std::memcpy(p.c + (i + r) * p.c_row + j, &sum[r], sizeof(V));
  }
}

// All rows of C from i on: R at a time, then the rest in halves of that.
template <int R, int bytes, class T>
[[gnu::always_inline]] inline void rows_from(const Product<T>& p, int64_t i) {
  typedef T V __attribute__((vector_size(bytes)));
  constexpr int64_t width = bytes / sizeof(T);
  for (; i + R <= p.rows; i += R) {
    int64_t j = 0;
    for (; j + width <= p.columns; j += width) {
      tile<R, V>(p, i, j);
    }
    if (j < p.columns && p.columns >= width) {
      tile<R, V>(p, i, p.columns - width);  // some columns a second time
    } else {
      for (; j < p.columns; ++j) {
        tile<R, T>(p, i, j);
      }
    }
  }
  if constexpr (R > 1) {
    rows_from<R / 2, bytes>(p, i);
  }
}

// Measured with one thread. Without AVX2, ATen's products use what this CPU has better.
inline bool product_pays(int64_t batch) {
  return batch <= 32 && interop::instruction_set() != interop::InstructionSet::baseline;
}

// As many rows at a time as there are registers for.
template <class T>
void product(
    int64_t rows,
    int64_t columns,
    int64_t inner,
    const T* a,
    int64_t a_row,
    int64_t a_inner,
    const T* b,
    int64_t b_inner,
    const std::type_identity_t<T>* start,
    T* c,
    int64_t c_row) {
  const Product<T> p{rows, columns, inner, a, a_row, a_inner, b, b_inner, start, c, c_row};
  switch (interop::instruction_set()) {
    case interop::InstructionSet::avx512:
      return interop::detail::with_avx512([&] { rows_from<16, 64>(p, 0); });
    case interop::InstructionSet::avx2:
      return interop::detail::with_avx2([&] { rows_from<8, 32>(p, 0); });
    default:
      return rows_from<8, 16>(p, 0);
  }
}

}  // namespace lltm
