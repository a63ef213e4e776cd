// The functions as nanobind binds them, with nb::ndarray<nb::ro>: any array that exports itself by DLPack, to be read.
// An argument holds what DLPack exported for as long as the function runs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace {

using T = const nb::ndarray<nb::ro>&;

int64_t one(T a) {
  return static_cast<int64_t>(a.size());
}

int64_t three(T a, T b, T c) {
  return one(a) + one(b) + one(c);
}

int64_t eight(T a, T b, T c, T d, T e, T f, T g, T h) {
  return three(a, b, c) + three(d, e, f) + one(g) + one(h);
}

}  // namespace

NB_MODULE(crossing_nanobind, m) {
  m.def("one", one);
  m.def("three", three);
  m.def("eight", eight);
}
