// Runs a loop with the widest vectors of this CPU, as ATen does, from a module that is compiled for the oldest CPU.
//
// g++ vectorises loops itself, but must be told that it may use AVX. So the loop is compiled three times, in
// functions that differ in their `target`, and the CPU decides which of them runs. The choice is ATen's own, so the
// environment variable ATEN_CPU_CAPABILITY (default, avx2, avx512) applies here too.
//
// Compile with -O3 -fno-trapping-math: at -O2, g++ leaves most loops as they are, and with trapping math it treats a
// comparison as a side effect. Except on x86 with g++ or clang, the loop is compiled once.
#pragma once

#include <c10/macros/Export.h>

#include <string>

// Exported by libtorch_cpu. Its header, ATen/Version.h, includes <immintrin.h> and <chrono>: 1 s of g++.
namespace at {
TORCH_API std::string get_cpu_capability();
}

// Before a statement: its calls are inlined. What g++ calls flatten also inlines the calls of what it inlines, but
// clang's inlines only the calls that the function itself has. A loop that is not inlined is compiled for the oldest
// CPU.
#if defined(__clang__) && __clang_major__ >= 15
#define INTEROP_INLINED [[clang::always_inline]]
#else
#define INTEROP_INLINED
#endif

// clang has no such target, and would ignore all others with it. It takes 512 bits without being told.
#ifdef __clang__
#define INTEROP_WIDEST
#else
#define INTEROP_WIDEST ",prefer-vector-width=512"
#endif

namespace interop {

enum class InstructionSet { baseline, avx2, avx512 };

inline InstructionSet instruction_set() {
  static const InstructionSet chosen = [] {
    const auto capability = at::get_cpu_capability();
#if defined(__x86_64__) && defined(__GNUC__)
    // F16C converts Half. ATen does not check for it: every CPU with AVX2 has it. But a virtual machine may hide it.
    if (!__builtin_cpu_supports("f16c")) {
      return InstructionSet::baseline;
    }
#endif
    return capability == "AVX512" ? InstructionSet::avx512
           : capability == "AVX2" ? InstructionSet::avx2
                                  : InstructionSet::baseline;
  }();
  return chosen;
}

namespace detail {

// flatten inlines every call into this function, so the called code is compiled for the function's target. The
// features are those that ATen checks before it selects the same set.
#if defined(__x86_64__) && defined(__GNUC__)
template <class F>
__attribute__((flatten, target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma" INTEROP_WIDEST))) void with_avx512(
    const F& f) {
  f();
}

template <class F>
__attribute__((flatten, target("avx2,fma"))) void with_avx2(const F& f) {
  f();
}
#else
template <class F>
void with_avx512(const F& f) {
  f();
}

template <class F>
void with_avx2(const F& f) {
  f();
}
#endif
#undef INTEROP_WIDEST

template <class F>
void vectorized(const F& f) {
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return with_avx512(f);
    case InstructionSet::avx2:
      return with_avx2(f);
    default:
      return f();
  }
}

}  // namespace detail

// A T* whose elements no other pointer of the function writes, so that g++ need not compare addresses first.
template <class T>
using restricted = T* __restrict__;
template <class T>
using const_restricted = const T* __restrict__;

}  // namespace interop

// A macro, because the call must name the function: a call through a pointer could not be inlined.
#define INTEROP_VECTORIZED(function, ...) interop::detail::vectorized([&] { INTEROP_INLINED(function)(__VA_ARGS__); })
