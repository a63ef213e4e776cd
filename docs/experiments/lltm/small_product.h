// Matrix products in which one side is as short as a batch, as they come up in a recurrent cell.
//
// A general product first copies both matrices into blocks, which pays when each element is then used many times. With
// a short batch the weights are used so little that they are better read where they lie. So this is one loop around
// multiply-add instructions: `rows` numbers of A times one vector of B, into as many vectors of C, which stay in
// registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "interop/instruction_sets.h"
#include "interop/parallel.h"

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

// R rows of C by as many columns as N vectors V hold, from row i and column j. V may be T itself.
template <int R, int N, class V, class T>
[[gnu::always_inline]] inline void tile(const Product<T>& p, int64_t i, int64_t j) {
  constexpr int64_t width = sizeof(V) / sizeof(T);
  V sum[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      sum[r][n] = V{} + (p.start ? p.start[i + r] : T(0));
    }
  }
  const T* a = p.a + i * p.a_row;
  const T* b = p.b + j;
  for (int64_t k = 0; k < p.inner; ++k) {
    V value[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {  // one at a time, or g++ keeps them in memory
      std::memcpy(&value[n], b + k * p.b_inner + n * width, sizeof(V));
      if constexpr (N > 1) {  // the next rows of B are in other pages, where the CPU does not look ahead
        __builtin_prefetch(b + (k + 8) * p.b_inner + n * width);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const T factor = a[r * p.a_row + k * p.a_inner];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        sum[r][n] += factor * value[n];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      std::memcpy(p.c + (i + r) * p.c_row + j + n * width, &sum[r][n], sizeof(V));
    }
  }
}

// Rows i to end of C, in the columns of a tile from j on: R rows at a time, then the rest in halves of that.
template <int R, int N, class V, class T>
[[gnu::always_inline]] inline void rows_of(const Product<T>& p, int64_t i, int64_t end, int64_t j) {
  for (; i + R <= end; i += R) {
    tile<R, N, V>(p, i, j);
  }
  if constexpr (R > 1) {
    rows_of<R / 2, N, V>(p, i, end, j);
  }
}

// Rows i to end of C. A vector has `bytes`. There are registers for R rows of one vector, or R / 2 rows of three, which
// read three vectors that lie next to one another and use each more often.
template <int R, int bytes, class T>
[[gnu::always_inline]] inline void all_columns(const Product<T>& p, int64_t i, int64_t end) {
  typedef T V __attribute__((vector_size(bytes)));
  constexpr int64_t width = bytes / sizeof(T);
  int64_t j = 0;
  for (; j + 3 * width <= p.columns; j += 3 * width) {
    rows_of<R / 2, 3, V>(p, i, end, j);
  }
  for (; j + width <= p.columns; j += width) {
    rows_of<R, 1, V>(p, i, end, j);
  }
  if (j < p.columns && p.columns >= width) {
    rows_of<R, 1, V>(p, i, end, p.columns - width);  // some columns a second time
  } else {
    for (; j < p.columns; ++j) {
      rows_of<R, 1, T>(p, i, end, j);
    }
  }
}

// All of C. The larger of A and B is read once, and the other one stays in a cache.
template <int R, int bytes, class T>
[[gnu::always_inline]] inline void all(const Product<T>& p) {
  if (p.rows <= p.columns) {
    return all_columns<R, bytes>(p, 0, p.rows);
  }
  for (int64_t i = 0; i < p.rows; i += R) {
    all_columns<R, bytes>(p, i, std::min(i + R, p.rows));
  }
}

// Without AVX2, ATen's products use what this CPU has better.
inline bool product_pays(int64_t batch) {
  return batch <= 32 && interop::instruction_set() != interop::InstructionSet::baseline;
}

// As many rows at a time as there are registers for.
template <class T>
void on_this_thread(const Product<T>& p) {
  switch (interop::instruction_set()) {
    case interop::InstructionSet::avx512:
      return interop::detail::with_avx512([&] { all<16, 64>(p); });
    case interop::InstructionSet::avx2:
      return interop::detail::with_avx2([&] { all<8, 32>(p); });
    default:
      return all<8, 16>(p);
  }
}

// The parts that threads compute: 16 rows of C, or 96 columns. Each is some whole tiles.
constexpr int64_t rows_of_a_part = 16, columns_of_a_part = 96;
// The minimum number of products of two numbers for a thread, which take several times as long as starting it.
constexpr int64_t worth_a_thread = 1 << 18;

template <class T>
void row_parts(int64_t begin, int64_t end, void* data) {
  Product<T> p = *static_cast<const Product<T>*>(data);
  const int64_t first = begin * rows_of_a_part;
  p.rows = std::min(end * rows_of_a_part, p.rows) - first;
  p.a += first * p.a_row;
  p.c += first * p.c_row;
  p.start += p.start ? first : 0;
  on_this_thread(p);
}

template <class T>
void column_parts(int64_t begin, int64_t end, void* data) {
  Product<T> p = *static_cast<const Product<T>*>(data);
  const int64_t first = begin * columns_of_a_part;
  p.columns = std::min(end * columns_of_a_part, p.columns) - first;
  p.b += first;
  p.c += first;
  on_this_thread(p);
}

// On torch's threads, in parts of whichever side of C has more of them.
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
  Product<T> p{rows, columns, inner, a, a_row, a_inner, b, b_inner, start, c, c_row};
  if (rows * columns * inner < 2 * worth_a_thread) {
    return on_this_thread(p);
  }
  const auto parts = [](int64_t size, int64_t of_a_part) { return (size + of_a_part - 1) / of_a_part; };
  const int64_t by_rows = parts(rows, rows_of_a_part), by_columns = parts(columns, columns_of_a_part);
  const int64_t count = std::max(by_rows, by_columns);
  const int64_t grain = parts(count * worth_a_thread, rows * columns * inner);
  interop::parallel_for(0, count, grain, by_rows >= by_columns ? &row_parts<T> : &column_parts<T>, &p);
}

}  // namespace lltm
