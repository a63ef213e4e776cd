// The same class in C++: an at::Tensor as a member of a struct that pybind11 makes a Python class of.
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>  // what torch/extension.h has of pybind11; all of it takes twice as long to compile

namespace {

struct Member {
  at::Tensor t;

  int64_t numel() const {
    return t.numel();
  }
  float first() const {
    return t.accessor<const float, 1>()[0];
  }
  at::Tensor neg() const {
    const pybind11::gil_scoped_release nogil;
    return at::neg(t);
  }
};

}  // namespace

PYBIND11_MODULE(members_pybind11, m) {
  pybind11::class_<Member>(m, "Member")
      .def(pybind11::init<at::Tensor>())
      .def("numel", &Member::numel)
      .def("first", &Member::first)
      .def("neg", &Member::neg)
      .def("get", [](const Member& self) { return self.t; })
      .def("set", [](Member& self, at::Tensor t) { self.t = std::move(t); })
      .def("close", [](Member& self) { self.t = at::Tensor(); });

  struct Pickled : Member {};
  pybind11::class_<Pickled, Member>(m, "Pickled")
      .def(pybind11::init<at::Tensor>())
      .def(
          pybind11::pickle(
              [](const Pickled& self) { return pybind11::make_tuple(self.t); },
              [](const pybind11::tuple& state) { return Pickled{{state[0].cast<at::Tensor>()}}; }));
}
