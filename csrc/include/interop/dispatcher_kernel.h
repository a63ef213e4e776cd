// Adapts a kernel written in Cython to the dispatcher: with the dispatcher's types, and errors as C++ exceptions.
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

// How the dispatcher passes a value of type T: as a `Dispatched`. make() turns that into a value that lasts as long
// as the call.
template <class T>
struct FromDispatcher {
  using Dispatched = T;
  static T make(T value) {
    return value;
  }
};

// Borrowed for the call, as everywhere in torch.
template <class T>
struct Borrowed {
  using Dispatched = const T&;
  static const T& make(const T& value) {
    return value;
  }
};
template <>
struct FromDispatcher<at::Tensor> : Borrowed<at::Tensor> {};
template <>
struct FromDispatcher<std::optional<at::Tensor>> : Borrowed<std::optional<at::Tensor>> {};
template <>
struct FromDispatcher<at::Scalar> : Borrowed<at::Scalar> {};

// Copied into types that Cython knows.
template <class T>
struct FromDispatcher<std::vector<T>> {
  using Dispatched = c10::ArrayRef<T>;
  static std::vector<T> make(Dispatched value) {
    return value.vec();
  }
};
template <class T>
struct FromDispatcher<std::optional<std::vector<T>>> {
  // The types that the dispatcher supports.
  using Dispatched = std::conditional_t<
      std::is_same_v<T, int64_t> || std::is_same_v<T, c10::SymInt>,
      c10::OptionalArrayRef<T>,
      std::optional<c10::ArrayRef<T>>>;
  static std::optional<std::vector<T>> make(Dispatched value) {
    return value ? std::optional(value->vec()) : std::nullopt;
  }
};

// These stay lists, as no array has their elements: a missing optional tensor is None, and a vector of bool has bits.
template <class T>
struct FromList {
  using Dispatched = c10::List<T>;
  static std::vector<T> make(const Dispatched& value) {
    return value.vec();
  }
};
template <>
struct FromDispatcher<std::vector<std::optional<at::Tensor>>> : FromList<std::optional<at::Tensor>> {};
template <>
struct FromDispatcher<std::vector<bool>> : FromList<bool> {};
template <>
struct FromDispatcher<std::vector<std::string>> : FromList<std::string> {};
template <class T>
  requires std::is_same_v<typename FromDispatcher<std::vector<T>>::Dispatched, c10::List<T>>
struct FromDispatcher<std::optional<std::vector<T>>> {
  using Dispatched = std::optional<c10::List<T>>;
  static std::optional<std::vector<T>> make(const Dispatched& value) {
    return value ? std::optional(value->vec()) : std::nullopt;
  }
};

// Our classes in place of torch's.
template <class Ours, class Theirs>
struct Converted {
  using Dispatched = Theirs;
  static Ours make(const Theirs& value) {
    return Ours(value);
  }
};
template <class Ours, class Theirs>
struct Converted<std::optional<Ours>, std::optional<Theirs>> {
  using Dispatched = std::optional<Theirs>;
  static std::optional<Ours> make(const Dispatched& value) {
    return value ? std::optional(Ours(*value)) : std::nullopt;
  }
};
template <class T>
struct FromDevices {
  using Dispatched = WithTorchDevice<T>;
  static T make(const Dispatched& value) {
    return with_devices<T>(value);
  }
};
template <>
struct FromDispatcher<Device> : FromDevices<Device> {};
template <>
struct FromDispatcher<std::optional<Device>> : FromDevices<std::optional<Device>> {};
template <>
struct FromDispatcher<std::vector<Device>> : FromDevices<std::vector<Device>> {};
template <>
struct FromDispatcher<std::optional<std::vector<Device>>> : FromDevices<std::optional<std::vector<Device>>> {};
template <>
struct FromDispatcher<std::vector<std::optional<Device>>> : FromDevices<std::vector<std::optional<Device>>> {};
// None becomes an undefined generator; torch has no other type for it.
template <class G>
  requires std::is_base_of_v<at::Generator, G>
struct FromDispatcher<G> {
  using Dispatched = std::optional<at::Generator>;
  static G make(const Dispatched& value) {
    return value ? G(*value) : G();
  }
};
template <class G>
  requires std::is_base_of_v<at::Generator, G>
struct FromDispatcher<std::optional<G>> : Converted<std::optional<G>, std::optional<at::Generator>> {};
template <>
struct FromDispatcher<std::string> : Converted<std::string, std::string_view> {};
template <>
struct FromDispatcher<std::optional<std::string>>
    : Converted<std::optional<std::string>, std::optional<std::string_view>> {};

// Whether a kernel can have the C numbers in T. Only a number alone is converted, so those in an optional or a vector
// are the dispatcher's.
template <class T, bool IsElement = false>
struct HasKnownNumbers
    : std::bool_constant<
          !std::is_arithmetic_v<T> || std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
          std::is_same_v<T, double> || (!IsElement && !std::is_same_v<T, char> && sizeof(T) <= sizeof(int64_t))> {};
template <class T, bool IsElement>
struct HasKnownNumbers<std::vector<T>, IsElement> : HasKnownNumbers<T, true> {};
template <class T, bool IsElement>
struct HasKnownNumbers<std::optional<T>, IsElement> : HasKnownNumbers<T, true> {};
template <class T, bool IsElement>
struct HasKnownNumbers<c10::ArrayRef<T>, IsElement> : HasKnownNumbers<T, true> {};
template <class T>
struct WithKnownNumbers {
  static_assert(
      HasKnownNumbers<T>::value,
      "a number of a kernel is an int64_t, another integer but char, a double, a float, a cbool or a bint; in a "
      "vector or an optional it is an int64_t, a double or a cbool");
};

// `Dispatched` is the dispatcher's type for a parameter that Cython declares as P. A Parameter<P> is constructed from
// it, and owns what must live as long as the call. get() returns the argument.
//
// `Whole` is what a C int stands for, int64_t or bool. Cython's bint is an int as well, so the schema decides.
template <class P, class Whole>
class Parameter : WithKnownNumbers<std::remove_cvref_t<P>> {
  static_assert(!std::is_pointer_v<P>, "a kernel takes no pointers and no Python objects");
  static_assert(
      !std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>,
      "a kernel can change only those parameters that are tensors: declare the others by value");
  using From = FromDispatcher<std::remove_cvref_t<P>>;

 public:
  using Dispatched = typename From::Dispatched;
  explicit Parameter(Dispatched value) : value_(From::make(std::forward<Dispatched>(value))) {}
  const std::remove_cvref_t<P>& get() noexcept {
    return value_;
  }

 private:
  decltype(From::make(std::declval<Dispatched>())) value_;
};

// The kernel gets a handle of its own: assigning another tensor to it does not change the caller's.
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
    std::is_integral_v<P> && !std::is_same_v<P, bool> && !std::is_same_v<P, char> && !std::is_same_v<P, int64_t>;

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

// Converts a kernel's result. Cython's tuple of C values becomes a std::tuple.
template <class R, class Whole>
struct Result : WithKnownNumbers<R> {
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
template <class R, class Whole>
  requires has_devices<R>
struct Result<R, Whole> {
  using Dispatched = WithTorchDevice<R>;
  static Dispatched give(const R& value) {
    return with_devices<Dispatched>(value);
  }
};
template <class Whole>
struct Result<std::vector<bool>, Whole> {
  using Dispatched = c10::List<bool>;
  static Dispatched give(const std::vector<bool>& value) {
    Dispatched list;
    for (const bool one : value) {
      list.push_back(one);
    }
    return list;
  }
};
template <class Whole>
struct Result<std::optional<std::vector<bool>>, Whole> {
  using Dispatched = std::optional<c10::List<bool>>;
  static Dispatched give(const std::optional<std::vector<bool>>& value) {
    return value ? Dispatched(Result<std::vector<bool>, Whole>::give(*value)) : std::nullopt;
  }
};
template <class... R, class Whole>
struct Result<std::tuple<R...>, Whole> {
  using Dispatched = std::tuple<typename Result<R, Whole>::Dispatched...>;
  static Dispatched give(std::tuple<R...>&& value) {
    return std::apply([](R&... parts) { return Dispatched(Result<R, Whole>::give(std::move(parts))...); }, value);
  }
};
template <class Whole>
struct Result<void, Whole> {
  using Dispatched = void;
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
  using Dispatched = typename Result<R, Whole>::Dispatched;
  using Function = Dispatched(typename Parameter<P, Whole>::Dispatched...);

  explicit KernelFunctor(R (*function)(P...)) : function_(function) {}

  // For each argument: whether it is an at.Tensor&, which the kernel changes.
  static std::vector<bool> changes() {
    return {std::is_same_v<P, at::Tensor&>...};
  }

  // Whether the kernel is registered for a key below autograd.
  bool below_autograd = false;

  Dispatched operator()(typename Parameter<P, Whole>::Dispatched... arguments) {
    const BelowAutograd mode(below_autograd || BelowAutograd::here());
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

// Calls a function that takes values of the dispatcher after a first parameter of ours, which is a reference.
template <class F, class Whole>
struct CallWithValues;

template <class R, class First, class... P, class Whole>
struct CallWithValues<R(First&, P...), Whole> {
  static R call(void (*function)(), First& first, c10::IValue* values) {
    return call(function, first, values, std::index_sequence_for<P...>());
  }

  // Its parameters after the first, as arguments, and its results.
  static std::unique_ptr<c10::FunctionSchema> schema() {
    using Function = typename Result<R, Whole>::Dispatched(typename Parameter<P, Whole>::Dispatched...);
    return std::make_unique<c10::FunctionSchema>(c10::inferFunctionSchemaFlattenedReturns<Function>());
  }

 private:
  template <size_t... I>
  static R call(void (*function)(), First& first, c10::IValue* values, std::index_sequence<I...>) {
    Callback call;
    const auto run = [&] {
      return reinterpret_cast<R (*)(First&, P...)>(function)(
          first, Parameter<P, Whole>(
                     c10::impl::ivalue_to_arg<
                         typename c10::impl::decay_if_not_tensor<typename Parameter<P, Whole>::Dispatched>::type,
                         false>::call(values[I]))
                     .get()...);
    };
    if constexpr (std::is_void_v<R>) {
      run();
      raise_if_failed(call);
    } else {
      R result = run();
      raise_if_failed(call);
      return result;
    }
  }
};

// A kernel and its signature, to be compared with the schema.
struct Candidate {
  c10::KernelFunction function;
  bool* below_autograd;       // in `function`
  std::vector<bool> changes;  // see KernelFunctor
  c10::impl::CppSignature signature;
  std::unique_ptr<c10::FunctionSchema> schema;
};

template <class F, class Whole>
Candidate candidate(F* function) {
  using K = KernelFunctor<F, Whole>;
  auto kernel = std::make_unique<K>(function);
  bool* below_autograd = &kernel->below_autograd;
  return {
      c10::KernelFunction::makeFromUnboxedFunctor<false, K>(std::move(kernel)), below_autograd, K::changes(),
      c10::impl::CppSignature::make<typename K::Function>(),
      std::make_unique<c10::FunctionSchema>(c10::inferFunctionSchemaFlattenedReturns<typename K::Function>())};
}

template <class T>
struct HasInt : std::is_same<T, int> {};
template <CTuple T>
struct HasInt<T> : decltype(detail::with_fields(std::declval<const T&>(), []<class... F>(const F&...) {
  return std::bool_constant<(std::is_same_v<F, int> || ...)>();
})){};
template <class... R>
struct HasInt<std::tuple<R...>> : std::bool_constant<(HasInt<R>::value || ...)> {};
template <class R, class... P>
struct HasInt<R(P...)> : std::bool_constant<HasInt<R>::value || (std::is_same_v<P, int> || ...)> {};
template <class F>
inline constexpr bool has_int = HasInt<F>::value;

// The ways in which `function` can be a kernel. The schema selects one.
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
