// The functions as operators of a library: torch.ops.crossing.one and so on. The dispatcher's stack holds a reference
// to each C++ tensor for as long as the function runs.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace {

using T = const at::Tensor&;

int64_t one(T a) {
  return a.numel();
}

int64_t three(T a, T b, T c) {
  return a.numel() + b.numel() + c.numel();
}

int64_t eight(T a, T b, T c, T d, T e, T f, T g, T h) {
  return three(a, b, c) + three(d, e, f) + g.numel() + h.numel();
}

}  // namespace

TORCH_LIBRARY(crossing, library) {
  library.def("one(Tensor a) -> int");
  library.def("three(Tensor a, Tensor b, Tensor c) -> int");
  library.def("eight(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, Tensor g, Tensor h) -> int");
}

TORCH_LIBRARY_IMPL(crossing, CPU, library) {
  library.impl("one", one);
  library.impl("three", three);
  library.impl("eight", eight);
}
