// The setup_context function of an operator's gradient, without the types of its parameters.
#pragma once

#include <memory>
#include <vector>

#include "interop/dispatcher_kernel.h"
#include "interop/gradient.h"

namespace interop::autograd {

// A setup_context function. It is called with the operator's arguments and results, and saves the values that
// backward needs.
struct SetupContext {
  void (*function)() = nullptr;
  void (*call)(void (*function)(), Context&, c10::IValue* values) = nullptr;
  std::unique_ptr<c10::FunctionSchema> schema;  // its parameters after the Context, as arguments
  // The arguments that the operator's schema declares as symbolic sizes and the function takes as numbers.
  std::vector<size_t> numbers = {};
};

namespace detail {

template <class F, class Whole>
struct Setup {
  static_assert(
      sizeof(F*) == 0,
      "setup_context is `cdef void setup_context(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * "
      "nogil`: first the context, then the operator's arguments, then its results");
};

template <class... P, class Whole>
struct Setup<void(Context&, P...), Whole> {
  static SetupContext make(void (*function)(Context&, P...)) {
    using Call = dispatcher::CallWithValues<void(Context&, P...), Whole>;
    return {reinterpret_cast<void (*)()>(function), &Call::call, Call::schema()};
  }
};

}  // namespace detail

// The possible signatures of `function`; the schema selects one. See dispatcher::candidates.
template <class F>
std::vector<SetupContext> setups(F* function) {
  std::vector<SetupContext> result;
  result.push_back(detail::Setup<F, int64_t>::make(function));
  if constexpr (dispatcher::has_int<F>) {
    result.push_back(detail::Setup<F, bool>::make(function));
  }
  return result;
}

}  // namespace interop::autograd
