// torch.autograd for functions written in Cython: a Function has a forward and a backward, which share a Context.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "interop/convert.h"
#include "interop/gradient.h"
#include "interop/graph.h"
#include "interop/runtime.h"
#include "interop/unwrap_reference.h"
#include "interop/value.h"

namespace interop::autograd {

// Calls a forward function of any signature with values of any type. The call checks whether the types match.
template <class F>
struct Forward {
  static_assert(
      sizeof(F*) == 0,
      "forward is `cdef at.Tensor forward(Context& ctx, const at.Tensor& x) except * nogil`: first the context, then "
      "the arguments of apply()");
};

template <class R, class... P>
struct Forward<R(Context&, P...)> {
  static constexpr size_t arguments = sizeof...(P);
  static constexpr size_t outputs = count<R>;

  static void call(void (*function)(), Context& context, const Value* values, const char* name, Tensors& outputs) {
    call(
        reinterpret_cast<R (*)(Context&, P...)>(function), context, values, name, outputs,
        std::index_sequence_for<P...>());
  }

 private:
  template <size_t... I>
  static void call(
      R (*function)(Context&, P...),
      Context& context,
      const Value* values,
      const char* name,
      Tensors& outputs,
      std::index_sequence<I...>) {
    Callback call;
    R result = function(context, values[I].template as<P>(name, I)...);
    raise_if_failed(call);
    append(outputs, std::move(result));
  }
};

// R is at::Tensor, a std::tuple of tensors, or a std::vector of them. A Cython function may also return Cython's own
// tuple of C values. That type has no name, so Function represents it as a std::tuple.
template <class R>
class Function {
 public:
  template <class F, class B, class J>
  void define(const char* name, F* forward, B* backward, J* jvp) {
    define(name, forward, backward, Gradient<J>::make(jvp));
  }

  template <class F, class B>
  void define(const char* name, F* forward, B* backward) {
    define(name, forward, backward, Backward());
  }

  template <class... A>
  R apply(const A&... arguments) const {
    TORCH_CHECK(
        definition_, "Function.apply: the function has no forward yet; call define(name, forward, backward) first");
    const char* name = definition_->name.c_str();
    TORCH_CHECK_TYPE(
        sizeof...(A) == definition_->arguments, name, ": forward takes ", definition_->arguments, " arguments, got ",
        sizeof...(A));
    const Input inputs[sizeof...(A) + 1] = {input(unwrap_reference(arguments))..., Input()};
    Tensors outputs;
    const auto call = [&](Context& context, const auto&... given) {
      // One transform's level calls this, below autograd: see csrc/apply.cpp. The note is made here because each module
      // has its own, but for what g++ compiles.
      constexpr auto transforms = c10::DispatchKey::FuncTorchDynamicLayerFrontMode;
      const BelowAutograd mode(BelowAutograd::here() || c10::impl::tls_is_dispatch_key_excluded(transforms));
      const Value values[sizeof...(A) + 1] = {Value(given)..., Value()};
      call_(forward_, context, values, name, outputs);
    };
    const auto forward = [&](Context& context, const at::Tensor* others) {
      if (!others) {
        call(context, unwrap_reference(arguments)...);
        return;
      }
      // A braced list, because it evaluates its elements in order.
      const std::tuple<decltype(with_others(unwrap_reference(arguments), others))...> given = {
          with_others(unwrap_reference(arguments), others)...};
      std::apply([&](const auto&... one) { call(context, one...); }, given);
    };
    runtime().apply(definition_, {inputs, sizeof...(A)}, forward, outputs);
    return collect<R>(outputs, name);
  }

 private:
  template <class F, class B>
  void define(const char* name, F* forward, B* backward, const Backward& jvp) {
    TORCH_CHECK(!definition_, "Function.define(\"", name, "\"): it is defined already, as ", definition_->name);
    static_assert(Forward<F>::outputs == count<R>, "Function[R]: forward returns as many tensors as there are in R");
    const Backward gradient = Gradient<B>::make(backward);
    TORCH_CHECK_TYPE(
        gradient.outputs == count<R> || gradient.outputs == any, name, ": forward returns ", said(count<R>),
        ", but backward takes the gradients of ", said(gradient.outputs));
    TORCH_CHECK_TYPE(
        gradient.results == Forward<F>::arguments || gradient.results == any, name, ": forward takes ",
        Forward<F>::arguments, " arguments, but backward returns ", gradient.results,
        " gradients; it must return one for each argument, at.Tensor() for those that have none");
    refuse_unfit(name, jvp, Forward<F>::arguments, count<R>);
    forward_ = reinterpret_cast<void (*)()>(forward);
    call_ = &Forward<F>::call;
    definition_ = std::make_shared<Definition>(Definition{name, gradient, Forward<F>::arguments, jvp});
  }

  std::shared_ptr<const Definition> definition_;
  void (*forward_)() = nullptr;
  void (*call_)(void (*)(), Context&, const Value*, const char*, Tensors&) = nullptr;
};

}  // namespace interop::autograd
