// A kernel written in Cython, as the dispatcher wants it: with the types of its own, and errors as C++ exceptions.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/CppSignature.h>
#include <ATen/core/op_registration/infer_schema.h>
#include <c10/util/OptionalArrayRef.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/callback.h"
#include "interop/convert.h"
#include "interop/device.h"
#include "interop/graph.h"
#include "interop/runtime.h"

namespace interop::dispatcher {

// What a parameter declared as P in Cython is to the dispatcher: `Dispatched`. A Parameter<P> is made of that and keeps
// what has to live as long as the call; get() is the argument.
//
// `whole` is what a C int stands for, int64_t or bool: Cython's bint is an int as well, so the schema has to say.
template <class P, class Whole>
class Parameter {
  static_assert(!std::is_pointer_v<P>, "a kernel takes no pointers and no Python objects");
  static_assert(
      !std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>,
      "of its parameters, a kernel can change tensors only: declare others by value");

 public:
  using Dispatched = std::remove_cvref_t<P>;
  explicit Parameter(Dispatched value) : value_(std::move(value)) {}
  const Dispatched& get() noexcept {
    return value_;
  }

 private:
  Dispatched value_;
};

// Borrowed for the call, as everywhere in torch.
template <class T>
class Borrowed {
 public:
  using Dispatched = const T&;
  explicit Borrowed(const T& value) : value_(value) {}
  const T& get() noexcept {
    return value_;
  }

 private:
  const T& value_;
};

template <class Whole>
class Parameter<const at::Tensor&, Whole> : public Borrowed<at::Tensor> {
  using Borrowed::Borrowed;
};
template <class Whole>
class Parameter<at::Tensor, Whole> : public Borrowed<at::Tensor> {
  using Borrowed::Borrowed;
};
template <class Whole>
class Parameter<const std::optional<at::Tensor>&, Whole> : public Borrowed<std::optional<at::Tensor>> {
  using Borrowed::Borrowed;
};
template <class Whole>
class Parameter<std::optional<at::Tensor>, Whole> : public Borrowed<std::optional<at::Tensor>> {
  using Borrowed::Borrowed;
};
template <class Whole>
class Parameter<const at::Scalar&, Whole> : public Borrowed<at::Scalar> {
  using Borrowed::Borrowed;
};
template <class Whole>
class Parameter<at::Scalar, Whole> : public Borrowed<at::Scalar> {
  using Borrowed::Borrowed;
};

// A handle of its own: a kernel that assigns another tensor to its parameter leaves the caller's alone.
template <class Whole>
class Parameter<at::Tensor&, Whole> {
 public:
  using Dispatched = const at::Tensor&;
  explicit Parameter(const at::Tensor& value) : value_(value) {}
  at::Tensor& get() noexcept {
    return value_;
  }

 private:
  at::Tensor value_;
};

template <class T>
class Copied {  // into what Cython knows
 public:
  using Dispatched = c10::ArrayRef<T>;
  explicit Copied(Dispatched value) : value_(value.vec()) {}
  std::vector<T>& get() noexcept {
    return value_;
  }

 private:
  std::vector<T> value_;
};
template <class T, class Whole>
class Parameter<std::vector<T>, Whole> : public Copied<T> {
  using Copied<T>::Copied;
};
template <class T, class Whole>
class Parameter<const std::vector<T>&, Whole> : public Copied<T> {
  using Copied<T>::Copied;
};
template <class T, class Whole>
class Parameter<std::optional<std::vector<T>>, Whole> {
 public:
  // What the dispatcher has a type for.
  using Dispatched =
      std::conditional_t<std::is_same_v<T, int64_t>, c10::OptionalArrayRef<T>, std::optional<c10::ArrayRef<T>>>;
  explicit Parameter(Dispatched value) {
    if (value) {
      value_ = value->vec();
    }
  }
  std::optional<std::vector<T>>& get() noexcept {
    return value_;
  }

 private:
  std::optional<std::vector<T>> value_;
};
template <class T, class Whole>
class Parameter<const std::optional<std::vector<T>>&, Whole> : public Parameter<std::optional<std::vector<T>>, Whole> {
  using Parameter<std::optional<std::vector<T>>, Whole>::Parameter;
};

template <class Whole>
class Parameter<Device, Whole> {
 public:
  using Dispatched = c10::Device;
  explicit Parameter(c10::Device value) : value_(value) {}
  const Device& get() noexcept {
    return value_;
  }

 private:
  Device value_;
};
template <class Whole>
class Parameter<const Device&, Whole> : public Parameter<Device, Whole> {
  using Parameter<Device, Whole>::Parameter;
};
template <class Whole>
class Parameter<std::optional<Device>, Whole> {
 public:
  using Dispatched = std::optional<c10::Device>;
  explicit Parameter(Dispatched value) : value_(value) {}
  const std::optional<Device>& get() noexcept {
    return value_;
  }

 private:
  std::optional<Device> value_;
};
template <class Whole>
class Parameter<const std::optional<Device>&, Whole> : public Parameter<std::optional<Device>, Whole> {
  using Parameter<std::optional<Device>, Whole>::Parameter;
};

class Text {
 public:
  using Dispatched = std::string_view;
  explicit Text(Dispatched value) : value_(value) {}
  const std::string& get() noexcept {
    return value_;
  }

 private:
  std::string value_;
};
template <class Whole>
class Parameter<std::string, Whole> : public Text {
  using Text::Text;
};
template <class Whole>
class Parameter<const std::string&, Whole> : public Text {
  using Text::Text;
};

template <class Whole>
class Parameter<float, Whole> {
 public:
  using Dispatched = double;
  explicit Parameter(double value) : value_(static_cast<float>(value)) {}
  float get() noexcept {
    return value_;
  }

 private:
  float value_;
};

template <class P>
inline constexpr bool is_whole =
    std::is_integral_v<P> && !std::is_same_v<P, bool> && !std::is_same_v<P, int64_t> && !std::is_same_v<P, int8_t>;

template <class P, class Whole>
  requires is_whole<P>
class Parameter<P, Whole> {
 public:
  using Dispatched = std::conditional_t<std::is_same_v<P, int>, Whole, int64_t>;
  explicit Parameter(Dispatched value) : value_(static_cast<P>(value)) {
    if constexpr (!std::is_same_v<Dispatched, bool>) {
      if (!std::in_range<P>(value)) {
        throw c10::ValueError(
            {__func__, __FILE__, __LINE__},
            c10::str("the number ", value, " does not fit into the kernel's C type: declare it int64_t"));
      }
    }
  }
  P get() noexcept {
    return value_;
  }

 private:
  P value_;
};

// What a kernel returns. Cython's tuple of C values becomes a std::tuple.
template <class R, class Whole>
struct Result {
  using Dispatched = std::conditional_t<
      std::is_same_v<R, float>,
      double,
      std::conditional_t<std::is_same_v<R, int>, Whole, std::conditional_t<is_whole<R>, int64_t, R>>>;
  static Dispatched give(R&& value) {
    if constexpr (std::is_unsigned_v<R> && sizeof(R) == sizeof(int64_t)) {
      TORCH_CHECK_VALUE(std::in_range<int64_t>(value), "the kernel's result ", value, " does not fit into an int64");
    }
    return static_cast<Dispatched>(std::move(value));
  }
};
template <CTuple R, class Whole>
struct Result<R, Whole> {
  static auto give(R&& value) {
    return detail::with_fields(value, []<class... F>(const F&... field) {
      return std::tuple<typename Result<F, Whole>::Dispatched...>(Result<F, Whole>::give(F(field))...);
    });
  }
  using Dispatched = decltype(give(std::declval<R>()));
};

template <class F, class Whole>
class KernelFunctor;

template <class R, class... P, class Whole>
class KernelFunctor<R(P...), Whole> final : public c10::OperatorKernel {
 public:
  using Dispatched = decltype([] {
    if constexpr (std::is_void_v<R>) {
      return std::type_identity<void>();
    } else {
      return std::type_identity<typename Result<R, Whole>::Dispatched>();
    }
  }())::type;
  using Function = Dispatched(typename Parameter<P, Whole>::Dispatched...);

  explicit KernelFunctor(R (*function)(P...)) : function_(function) {}

  // Whether it is registered for a key below autograd.
  bool below_autograd = false;

  Dispatched operator()(typename Parameter<P, Whole>::Dispatched... arguments) {
    const BelowAutograd mode(below_autograd);
    Callback call;
    if constexpr (std::is_void_v<R>) {
      function_(Parameter<P, Whole>(std::forward<decltype(arguments)>(arguments)).get()...);
      raise_if_failed(call);
    } else {
      R result = function_(Parameter<P, Whole>(std::forward<decltype(arguments)>(arguments)).get()...);
      raise_if_failed(call);
      return Result<R, Whole>::give(std::move(result));
    }
  }

 private:
  R (*function_)(P...);
};

// A kernel and what it takes, to be compared with the schema.
struct Candidate {
  c10::KernelFunction function;
  bool* below_autograd;       // in the function
  std::vector<bool> changes;  // whether it takes an at.Tensor& and so says that it changes it; for each argument
  c10::impl::CppSignature signature;
  std::unique_ptr<c10::FunctionSchema> schema;
};

template <class F>
struct Changes;
template <class R, class... P>
struct Changes<R(P...)> {
  static std::vector<bool> list() {
    return {std::is_same_v<P, at::Tensor&>...};
  }
};

template <class F, class Whole>
Candidate candidate(F* function) {
  using K = KernelFunctor<F, Whole>;
  auto kernel = std::make_unique<K>(function);
  bool* below_autograd = &kernel->below_autograd;
  return {
      c10::KernelFunction::makeFromUnboxedFunctor<false, K>(std::move(kernel)),
      below_autograd,
      Changes<F>::list(),
      c10::impl::CppSignature::make<typename K::Function>(),
      std::make_unique<c10::FunctionSchema>(c10::inferFunctionSchemaFlattenedReturns<typename K::Function>())};
}

template <class T>
struct HasInt : std::is_same<T, int> {};
template <CTuple T>
struct HasInt<T> : decltype(detail::with_fields(std::declval<const T&>(), []<class... F>(const F&...) {
  return std::bool_constant<(std::is_same_v<F, int> || ...)>();
})){};
template <class R, class... P>
struct HasInt<R(P...)> : std::bool_constant<HasInt<R>::value || (std::is_same_v<P, int> || ...)> {};
template <class F>
inline constexpr bool has_int = HasInt<F>::value;

// The ways in which `function` can be a kernel; the schema decides.
template <class F>
std::vector<Candidate> candidates(F* function) {
  std::vector<Candidate> result;
  result.push_back(candidate<F, int64_t>(function));
  if constexpr (has_int<F>) {
    result.push_back(candidate<F, bool>(function));
  }
  return result;
}

}  // namespace interop::dispatcher
