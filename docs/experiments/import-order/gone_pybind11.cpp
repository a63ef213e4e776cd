// A module that calls a function which the running torch does not have: the headers of the other one declare it.
#include <pybind11/pybind11.h>
#include <torch/headeronly/version.h>

PYBIND11_MODULE(gone_pybind11, m) {
  m.def("call", c10::gone_in_the_next_release);
}
