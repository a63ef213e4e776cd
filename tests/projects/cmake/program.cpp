// A program that is linked to torch, with C++20 and torch's threads.
#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include <cstdio>

int main() {
  static_assert(__cplusplus >= 202002L);
#ifdef _OPENMP
  const int openmp = 1;
#else
  const int openmp = 0;
#endif
  std::printf("%ld %d\n", static_cast<long>(at::ones({2, 3}).numel()), openmp);
}
