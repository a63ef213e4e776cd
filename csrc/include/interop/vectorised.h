// The inner loops of an elementwise operation, compiled for each instruction set that the machine may have.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/bit_cast.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "interop/instruction_sets.h"

namespace interop {

using RawLoop = void (*)(char** data, const int64_t* strides, int64_t n, int64_t m);

namespace detail {

template <class T>
C10_ALWAYS_INLINE T& at_byte(char* data, int64_t offset) {
  return *reinterpret_cast<T*>(data + offset);
}

// Reads a stored value, which has fewer bits than T for Half and BFloat16.
template <class Storage, class T>
C10_ALWAYS_INLINE T load(const Storage& stored) {
  if constexpr (std::is_same_v<Storage, bool>) {
    return reinterpret_cast<const unsigned char&>(stored) != 0;  // a byte of a tensor may have any value
  } else {
    return static_cast<T>(stored);
  }
}

C10_ALWAYS_INLINE void widen(const c10::BFloat16* stored, float* values, int64_t n) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) {
    values[k] = c10::bit_cast<float>(static_cast<uint32_t>(stored[k].x) << 16);
  }
}

// Rounds to nearest even as c10 does, but without its branch.
C10_ALWAYS_INLINE void narrow(const float* values, c10::BFloat16* stored, int64_t n) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t bits = c10::bit_cast<uint32_t>(values[k]);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    stored[k].x = static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : rounded);
  }
}

inline void widen_one_by_one(const c10::Half* stored, float* values, int64_t n) {
  std::copy_n(stored, n, values);
}

inline void narrow_one_by_one(const float* values, c10::Half* stored, int64_t n) {
  std::copy_n(values, n, stored);
}

#if defined(__x86_64__) && defined(__GNUC__)
// The compilers' own names for vcvtph2ps and vcvtps2ph. <immintrin.h> has others, and costs 1 s of g++.
using EightHalfs = short __attribute__((vector_size(16)));
using EightFloats = float __attribute__((vector_size(32)));

[[gnu::target("avx2,f16c")]] inline void widen_by_eights(const c10::Half* stored, float* values, int64_t n) {
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    EightHalfs eight;
    std::memcpy(&eight, stored + k, sizeof(eight));
    const EightFloats wide = __builtin_ia32_vcvtph2ps256(eight);
    std::memcpy(values + k, &wide, sizeof(wide));
  }
  widen_one_by_one(stored + k, values + k, n - k);
}

[[gnu::target("avx2,f16c")]] inline void narrow_by_eights(const float* values, c10::Half* stored, int64_t n) {
  constexpr int to_nearest_even = 0;
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    EightFloats eight;
    std::memcpy(&eight, values + k, sizeof(eight));
    const EightHalfs small = __builtin_ia32_vcvtps2ph256(eight, to_nearest_even);
    std::memcpy(stored + k, &small, sizeof(small));
  }
  narrow_one_by_one(values + k, stored + k, n - k);
}
#endif

// g++ does not vectorise loops with Half instructions.
inline void widen(const c10::Half* stored, float* values, int64_t n) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (instruction_set() != InstructionSet::baseline) {
    widen_by_eights(stored, values, n);
    return;
  }
#endif
  widen_one_by_one(stored, values, n);
}

inline void narrow(const float* values, c10::Half* stored, int64_t n) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (instruction_set() != InstructionSet::baseline) {
    narrow_by_eights(values, stored, n);
    return;
  }
#endif
  narrow_one_by_one(values, stored, n);
}

template <auto function, class Storage, class F = decltype(function)>
struct Loops;

template <auto function, class Storage, class R, class T, class... Others>
struct Loops<function, Storage, R (*)(T, Others...)> {
  static constexpr size_t inputs = 1 + sizeof...(Others);
  using Result = std::conditional_t<std::is_same_v<R, T>, Storage, R>;
  using Index = std::make_index_sequence<inputs>;

  // For Half and BFloat16. Converts a block at a time, because g++ does not vectorise conversions of single values.
  template <size_t constant, size_t... i>
  C10_ALWAYS_INLINE static void packed_small(char** data, int64_t n, std::index_sequence<i...>) {
    constexpr int64_t block = 256;
    T in[inputs][block], out[block];
    Result* result = reinterpret_cast<Result*>(data[0]);
    const Storage* stored[] = {reinterpret_cast<const Storage*>(data[1 + i])...};
    if (constant < inputs && n > 0) {
      std::fill_n(in[constant % inputs], block, load<Storage, T>(*stored[constant % inputs]));
    }
    for (int64_t begin = 0; begin < n; begin += block) {
      const int64_t count = std::min(block, n - begin);
      ((i == constant ? void() : widen(stored[i] + begin, in[i], count)), ...);
      if constexpr (std::is_same_v<R, T>) {
#pragma omp simd
        for (int64_t k = 0; k < count; ++k) {
          INTEROP_INLINED out[k] = function(in[i][k]...);
        }
        narrow(out, result + begin, count);
      } else {
#pragma omp simd
        for (int64_t k = 0; k < count; ++k) {
          INTEROP_INLINED result[begin + k] = function(in[i][k]...);
        }
      }
    }
  }

  // n adjacent elements. The input `constant`, which has stride 0, is read once.
  template <size_t constant, size_t... i>
  C10_ALWAYS_INLINE static void packed(char** data, int64_t n, std::index_sequence<i...>) {
    Result* out = reinterpret_cast<Result*>(data[0]);
    const Storage* in[] = {reinterpret_cast<const Storage*>(data[1 + i])...};
    const Storage* const* inp = in;
    const T once = constant < inputs && n > 0 ? load<Storage, T>(*in[constant % inputs]) : T();
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) {
      INTEROP_INLINED out[k] = static_cast<Result>(function((i == constant ? once : load<Storage, T>(inp[i][k]))...));
    }
  }

  template <size_t... i>
  C10_ALWAYS_INLINE static void strided(char** data, const int64_t* strides, int64_t n, std::index_sequence<i...>) {
    for (int64_t k = 0; k < n; ++k) {
      R value;
      INTEROP_INLINED value = function(load<Storage, T>(at_byte<const Storage>(data[1 + i], k * strides[1 + i]))...);
      at_byte<Result>(data[0], k * strides[0]) = static_cast<Result>(value);
    }
  }

  // Whether all elements are packed, except those of input `constant`, which has stride 0 (`inputs` for none).
  template <size_t... i>
  C10_ALWAYS_INLINE static bool is_packed(const int64_t* strides, size_t constant, std::index_sequence<i...>) {
    return strides[0] == sizeof(Result) &&
           ((strides[1 + i] == (i == constant ? 0 : static_cast<int64_t>(sizeof(Storage)))) && ...);
  }

  template <size_t constant>
  C10_ALWAYS_INLINE static bool run(char** data, int64_t n) {
    if constexpr (std::is_same_v<T, float> && !std::is_same_v<Storage, float>) {
      packed_small<constant>(data, n, Index());
    } else {
      packed<constant>(data, n, Index());
    }
    return true;
  }

  template <size_t... constant>
  C10_ALWAYS_INLINE static void row(char** data, const int64_t* strides, int64_t n, std::index_sequence<constant...>) {
    // Two inputs with stride 0 are seldom worth a loop of their own.
    if (!((is_packed(strides, constant, Index()) && run<constant>(data, n)) || ...)) {
      strided(data, strides, n, Index());
    }
  }

  C10_ALWAYS_INLINE static void rows(char** data, const int64_t* strides, int64_t n, int64_t m) {
    char* first[1 + inputs];
    for (int64_t j = 0; j < m; ++j) {
      for (size_t i = 0; i <= inputs; ++i) {
        first[i] = data[i] + j * strides[1 + inputs + i];
      }
      row(first, strides, n, std::make_index_sequence<inputs + 1>());
    }
  }

  // flatten, because a call that is not inlined cannot be vectorised.
  [[gnu::flatten]] static void baseline(char** data, const int64_t* strides, int64_t n, int64_t m) {
    rows(data, strides, n, m);
  }
#if defined(__x86_64__) && defined(__GNUC__)
  [[gnu::flatten,
    gnu::target("avx2,fma,f16c")]] static void avx2(char** data, const int64_t* strides, int64_t n, int64_t m) {
    rows(data, strides, n, m);
  }
  [[gnu::flatten, gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]] static void avx512(
      char** data, const int64_t* strides, int64_t n, int64_t m) {
    rows(data, strides, n, m);
  }
#endif
};

}  // namespace detail

// The loop for this machine: out[k] = function(in0[k], in1[k], ...), with `Storage` in memory.
template <auto function, class Storage>
RawLoop vectorised() {
  using Loops = detail::Loops<function, Storage>;
#if defined(__x86_64__) && defined(__GNUC__)
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return Loops::avx512;
    case InstructionSet::avx2:
      return Loops::avx2;
    default:
      break;
  }
#endif
  return Loops::baseline;
}

}  // namespace interop
