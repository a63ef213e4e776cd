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

constexpr int cache_line = 64;  // bytes

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
  bool add = false;        // to C as it is, in place of `start`
  bool many = inner > 64;  // rows of B; fewer are in the cache after the first tile
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
      if (p.add) {
        std::memcpy(&sum[r][n], p.c + (i + r) * p.c_row + j + n * width, sizeof(V));
      } else {
        sum[r][n] = V{} + (p.start ? p.start[i + r] : T(0));
      }
    }
  }
  // Pointers and strides in registers: computing addresses from `p` and k takes as many instructions as the products.
  const T* a = p.a + i * p.a_row;
  const T* b = p.b + j;
  T* c = p.c + i * p.c_row + j;
  const int64_t a_row = p.a_row, a_inner = p.a_inner, b_inner = p.b_inner, c_row = p.c_row;
  // More than eight rows have a second pointer: there are not enough registers for fifteen multiples of the stride.
  constexpr int half = R > 8 ? R / 2 : R;
  const T* second = a + half * a_row;
  // The rows of the next tile follow those of this one if each is in one piece: a line of the cache for each step.
  // They are what the product waits for where the weights are A, which forward has, and the batch is one vector.
  const T* next = a + R * a_row;
  const bool in_one_piece = a_inner == 1;
  for (int64_t k = p.inner; k > 0; --k, a += a_inner, second += a_inner, b += b_inner) {
    if constexpr (half < R) {
      asm("" : "+r"(second));  // or g++ computes it from `a` again
    }
    if constexpr (N == 1 && R * sizeof(T) == cache_line) {
      if (in_one_piece) {
        __builtin_prefetch(next, 0, 2);
        next += R;
      }
    }
    V value[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {  // one at a time, or g++ keeps them in memory
      std::memcpy(&value[n], b + n * width, sizeof(V));
      if (N > 1 && p.many) {  // the next rows of B are in other pages, where the CPU does not look ahead
        __builtin_prefetch(b + 8 * b_inner + n * width);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const T factor = r < half ? a[r * a_row] : second[(r - half) * a_row];
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
      std::memcpy(c + r * c_row + n * width, &sum[r][n], sizeof(V));
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

// Rows i to end of C. A vector has `bytes`. There are registers for R rows of one vector, or R / 2 rows of two or
// three, which use each number more often. Four vectors are two and two.
template <int R, int bytes, class T>
[[gnu::always_inline]] inline void all_columns(const Product<T>& p, int64_t i, int64_t end) {
  typedef T V __attribute__((vector_size(bytes)));
  constexpr int64_t width = bytes / sizeof(T);
  int64_t j = 0;
  for (; j + 3 * width <= p.columns && j + 4 * width != p.columns; j += 3 * width) {
    rows_of<R / 2, 3, V>(p, i, end, j);
  }
  for (; j + 2 * width <= p.columns; j += 2 * width) {
    rows_of<R / 2, 2, V>(p, i, end, j);
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

// All of C. The larger of A and B is read once, and the other one stays in a cache. B is read in blocks of rows, whose
// columns follow one another in memory.
template <int R, int bytes, class T>
[[gnu::always_inline]] inline void all(const Product<T>& p) {
  if (p.rows <= p.columns) {
    constexpr int64_t width = bytes / sizeof(T);
    // Columns that are computed a second time must not be added a second time.
    const int64_t rows_of_a_block = p.columns % width == 0 ? 128 : std::max<int64_t>(p.inner, 1);
    Product<T> block = p;
    for (int64_t k = 0; k < p.inner || k == 0; k += rows_of_a_block) {
      block.inner = std::min(rows_of_a_block, p.inner - k);
      block.a = p.a + k * p.a_inner;
      block.b = p.b + k * p.b_inner;
      block.add = k > 0;
      all_columns<R, bytes>(block, 0, p.rows);
    }
    return;
  }
  for (int64_t i = 0; i < p.rows; i += R) {
    all_columns<R, bytes>(p, i, std::min(i + R, p.rows));
  }
}

// Without AVX2, ATen's products use what this CPU has better.
inline bool product_pays(int64_t batch) {
  return batch <= 64 && interop::instruction_set() != interop::InstructionSet::baseline;
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

// The parts that threads compute: 16 rows of C, or 32 columns. Each is some whole vectors.
constexpr int64_t rows_of_a_part = 16, columns_of_a_part = 32;
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

// Each row of the source becomes a column of the target. The elements of a row of the target lie side by side. Where
// those of the source do too, four rows at a time are vectors, which two rounds of interleaving transpose.
template <class T>
void transpose(
    int64_t rows,
    int64_t columns,
    const T* source,
    int64_t source_row,
    int64_t source_column,
    T* target,
    int64_t target_row) {
  typedef T V __attribute__((vector_size(4 * sizeof(T))));
  typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Index;
  typedef Index Order __attribute__((vector_size(4 * sizeof(T))));
  constexpr Order low{0, 4, 1, 5}, high{2, 6, 3, 7};
  const int64_t whole_rows = source_column == 1 ? rows / 4 * 4 : 0, whole_columns = columns / 4 * 4;
  for (int64_t j = 0; j < whole_columns; j += 4) {
    for (int64_t i = 0; i < whole_rows; i += 4) {
      V v[4];
      for (int k = 0; k < 4; ++k) {
        std::memcpy(&v[k], source + (i + k) * source_row + j, sizeof(V));
      }
      for (int round = 0; round < 2; ++round) {
        const V a = v[0], b = v[1], c = v[2], d = v[3];
        v[0] = __builtin_shuffle(a, c, low);
        v[1] = __builtin_shuffle(a, c, high);
        v[2] = __builtin_shuffle(b, d, low);
        v[3] = __builtin_shuffle(b, d, high);
      }
      for (int k = 0; k < 4; ++k) {
        std::memcpy(target + (j + k) * target_row + i, &v[k], sizeof(V));
      }
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      target[j * target_row + i] = source[i * source_row + j * source_column];
    }
  }
}

}  // namespace lltm
