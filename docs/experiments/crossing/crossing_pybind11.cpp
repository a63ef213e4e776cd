// The same two functions as pybind11 binds them.
#include <torch/extension.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("empty", [](const py::object&) {});
  m.def("numel", [](const at::Tensor& x) { return x.numel(); });
}
