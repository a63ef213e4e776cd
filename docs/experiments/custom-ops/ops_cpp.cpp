// The operators in C++, with TORCH_LIBRARY.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor kernel(const at::Tensor& x) {
  return at::exp(x);
}

class Exp : public torch::autograd::Function<Exp> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("ops_cpp::exp_with_gradient", "")
                               .typed<at::Tensor(const at::Tensor&)>();
    const at::AutoDispatchBelowADInplaceOrView guard;
    at::Tensor y = op.call(x);
    ctx->save_for_backward({y});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {at::mul(grads[0], ctx->get_saved_variables()[0])};
  }
};

at::Tensor with_gradient(const at::Tensor& x) {
  return Exp::apply(x);
}

}  // namespace

TORCH_LIBRARY(ops_cpp, library) {
  library.def("exp(Tensor x) -> Tensor");
  library.def("exp_with_gradient(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(ops_cpp, CPU, library) {
  library.impl("exp", kernel);
  library.impl("exp_with_gradient", kernel);
}

TORCH_LIBRARY_IMPL(ops_cpp, Autograd, library) {
  library.impl("exp_with_gradient", with_gradient);
}
