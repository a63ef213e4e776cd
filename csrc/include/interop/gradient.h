// The context that forward and backward share, and the call of backward by the engine.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/convert.h"
#include "interop/runtime.h"
#include "interop/state.h"
#include "interop/unwrap_reference.h"

namespace interop::autograd {

// The ctx of Python's torch.autograd.Function. It lives as long as the node of the graph. Without a graph it lives as
// long as the call of forward.
class Context {
 public:
  // Saves tensors for backward. Call it once, in forward. Save inputs and outputs of forward only here: backward then
  // detects a change in place, and no reference cycle arises.
  template <class... T>
  void save_for_backward(const T&... tensors) {
    const at::Tensor* list[] = {&static_cast<const at::Tensor&>(unwrap_reference(tensors))...};
    save(list, sizeof...(T), false);
  }
  void save_for_backward(const std::vector<at::Tensor>& tensors) {
    save(tensors, false);
  }
  // Saves tensors for jvp. By default, jvp finds the tensors that are saved for backward.
  template <class... T>
  void save_for_forward(const T&... tensors) {
    const at::Tensor* list[] = {&static_cast<const at::Tensor&>(unwrap_reference(tensors))...};
    save(list, sizeof...(T), true);
  }
  void save_for_forward(const std::vector<at::Tensor>& tensors) {
    save(tensors, true);
  }
  virtual at::Tensor saved_tensor(int64_t index) = 0;
  virtual size_t saved_tensors() = 0;

  // Whether this argument of forward needs a gradient.
  virtual bool needs_input_grad(int64_t argument) = 0;

  // Call in forward: forward changed this input in place; this output has no gradient; with false, undefined gradients
  // stay undefined.
  virtual void mark_dirty(const at::Tensor& input) = 0;
  virtual void mark_non_differentiable(const at::Tensor& output) = 0;
  virtual void set_materialize_grads(bool value) = 0;

  // Other values for backward: a struct or another C++ class. The first call makes the object. The context owns it, and
  // has only one.
  template <class T>
  T* state() {
    static_assert(
        !Object<T>, "ctx.state[T] does not count references to Python objects: T must be a C++ type, such as a struct");
    return static_cast<T*>(state_of(state_type<T>));
  }

 protected:
  virtual void save(const at::Tensor* const* tensors, size_t count, bool for_jvp) = 0;
  virtual void* state_of(const StateType& type) = 0;
  ~Context() = default;

 private:
  void save(const std::vector<at::Tensor>& tensors, bool for_jvp) {
    c10::SmallVector<const at::Tensor*, 8> list;
    for (const at::Tensor& tensor : tensors) {
      list.push_back(&tensor);
    }
    save(list.data(), list.size(), for_jvp);
  }
};

inline constexpr size_t any = std::numeric_limits<size_t>::max();

// The number of tensors in a type: `any` for lists, 0 for a type without tensors.
template <class T>
struct Count : std::integral_constant<size_t, 0> {};
template <>
struct Count<at::Tensor> : std::integral_constant<size_t, 1> {};
template <>
struct Count<std::vector<at::Tensor>> : std::integral_constant<size_t, any> {};
template <class... T>
struct Count<std::tuple<T...>>
    : std::integral_constant<size_t, (std::is_same_v<T, at::Tensor> && ...) ? sizeof...(T) : 0> {};
template <CTuple T>
struct Count<T> : decltype(detail::with_fields(
                      std::declval<const T&>(), []<class... F>(const F&...) { return Count<std::tuple<F...>>(); })){};
template <class T>
inline constexpr size_t count = Count<T>::value;

inline std::string said(size_t count) {
  return count == any ? "a list" : std::to_string(count) + (count == 1 ? " output" : " outputs");
}

template <class P>
inline constexpr bool is_tensor_list = std::is_same_v<std::remove_cvref_t<P>, std::vector<at::Tensor>>;

template <class R>
void append(Tensors& list, R&& result) {
  using T = std::remove_cvref_t<R>;
  if constexpr (std::is_same_v<T, at::Tensor>) {
    list.push_back(std::move(result));
  } else if constexpr (std::is_same_v<T, std::vector<at::Tensor>>) {
    list.append(std::make_move_iterator(result.begin()), std::make_move_iterator(result.end()));
  } else if constexpr (CTuple<T>) {
    detail::with_fields(result, [&](const auto&... field) { (list.push_back(field), ...); });
  } else {
    std::apply([&](auto&... part) { (list.push_back(std::move(part)), ...); }, result);
  }
}

template <class R>
R collect(Tensors& list, const char* name) {
  if constexpr (std::is_same_v<R, std::vector<at::Tensor>>) {
    return R(std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
  } else {
    TORCH_CHECK_TYPE(
        list.size() == count<R>, name, ": forward returns ", said(list.size()), ", but Function is one of ",
        said(count<R>));
    if constexpr (std::is_same_v<R, at::Tensor>) {
      return std::move(list[0]);
    } else {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return R(std::move(list[I])...);
      }(std::make_index_sequence<count<R>>());
    }
  }
}

// A backward function with its type erased; or a jvp, which takes the tangents of the arguments and returns those of
// the outputs.
struct Backward {
  void (*function)() = nullptr;
  void (*call)(void (*function)(), Context&, Tensors& grads, Tensors& results) = nullptr;
  size_t outputs = 0;  // of forward; the number of gradients that it takes
  size_t results = 0;  // gradients that it returns

  explicit operator bool() const noexcept {
    return function != nullptr;
  }
};

template <class B>
struct Gradient {
  static_assert(
      sizeof(B) == 0,
      "backward is `cdef at.Tensor backward(Context& ctx, const at.Tensor& grad) except * nogil`, with a gradient for "
      "each output of forward, and returns one for each of its arguments; jvp is the same with a tangent for each "
      "argument of forward, and returns one for each output");
};

template <class R, class... G>
struct Gradient<R(Context&, G...)> {
  static constexpr bool takes_list = (is_tensor_list<G> || ...);
  static_assert(
      (takes_list && sizeof...(G) == 1) || (std::is_same_v<std::remove_cvref_t<G>, at::Tensor> && ...),
      "backward takes a Context& and, for each output of forward, a const at.Tensor&; or one const vector[at.Tensor]&. "
      "So does jvp for each argument");

  static Backward make(R (*function)(Context&, G...)) {
    static_assert(count<R> > 0, "backward and jvp return an at.Tensor, a tuple of them, or a vector[at.Tensor]");
    return {reinterpret_cast<void (*)()>(function), &call, takes_list ? any : sizeof...(G), count<R>};
  }

 private:
  static void call(void (*function)(), Context& context, Tensors& grads, Tensors& results) {
    const auto typed = reinterpret_cast<R (*)(Context&, G...)>(function);
    Callback call;
    auto run = [&]() -> R {
      if constexpr (takes_list) {
        std::vector<at::Tensor> list(grads.begin(), grads.end());
        return typed(context, list);
      } else {
        return [&]<size_t... I>(std::index_sequence<I...>) {
          return typed(context, grads[I]...);
        }(std::index_sequence_for<G...>());
      }
    };
    R result = run();
    raise_if_failed(call);
    append(results, std::move(result));
  }
};

// Raises if there is a jvp that does not fit the number of arguments and outputs.
inline void refuse_unfit(const std::string& where, const Backward& jvp, size_t arguments, size_t outputs) {
  TORCH_CHECK_TYPE(
      !jvp || jvp.outputs == arguments || jvp.outputs == any, where, ": there are ", arguments,
      " arguments, but jvp takes ", jvp.outputs,
      " tangents; it must take one for each argument, undefined for those that are not tensors, or one "
      "vector[at.Tensor]");
  TORCH_CHECK_TYPE(
      !jvp || jvp.results == outputs || jvp.results == any || outputs == any, where, ": there are ", said(outputs),
      ", but jvp returns the tangents of ", said(jvp.results));
}

// The data that all nodes of one function share.
struct Definition {
  std::string name;
  Backward backward;
  size_t arguments = 0;  // of forward
  Backward jvp = {};
};

// The tensors in one argument of forward, borrowed. For a list of optional tensors they are copies.
struct Input {
  const at::Tensor* first = nullptr;
  size_t count = 0;
  bool is_list = false;
  std::vector<at::Tensor> copies = {};
};

inline Input input(const at::Tensor& tensor) {
  return {&tensor, 1};
}
inline Input input(const std::optional<at::Tensor>& tensor) {
  static const at::Tensor undefined;
  return {tensor ? &*tensor : &undefined, 1};
}
inline Input input(const std::vector<at::Tensor>& tensors) {
  return {tensors.data(), tensors.size(), true};
}
inline Input input(const std::vector<std::optional<at::Tensor>>& tensors) {
  Input result{nullptr, tensors.size(), true};
  for (const std::optional<at::Tensor>& tensor : tensors) {
    result.copies.push_back(tensor.value_or(at::Tensor()));
  }
  result.first = result.copies.data();
  return result;
}
template <class T>
  requires std::is_same_v<T, at::Tensor> || std::is_same_v<T, std::optional<at::Tensor>>
Input input(const std::optional<std::vector<T>>& tensors) {
  return tensors ? input(*tensors) : Input{nullptr, 0, true};
}
template <class T>
Input input(const T&) {
  static_assert(count<T> == 0, "Function.apply takes tensors one by one, or as a vector[at.Tensor]");
  return {};
}

// The same argument with other tensors, read from `next`.
inline at::Tensor with_others(const at::Tensor&, const at::Tensor*& next) {
  return *next++;
}
inline std::optional<at::Tensor> with_others(const std::optional<at::Tensor>&, const at::Tensor*& next) {
  const at::Tensor& other = *next++;
  return other.defined() ? std::optional(other) : std::nullopt;
}
inline std::vector<at::Tensor> with_others(const std::vector<at::Tensor>& tensors, const at::Tensor*& next) {
  next += tensors.size();
  return {next - tensors.size(), next};
}
inline std::vector<std::optional<at::Tensor>> with_others(
    const std::vector<std::optional<at::Tensor>>& tensors, const at::Tensor*& next) {
  std::vector<std::optional<at::Tensor>> result;
  for (const std::optional<at::Tensor>& tensor : tensors) {
    result.push_back(with_others(tensor, next));
  }
  return result;
}
template <class T>
  requires std::is_same_v<T, at::Tensor> || std::is_same_v<T, std::optional<at::Tensor>>
std::optional<std::vector<T>> with_others(const std::optional<std::vector<T>>& tensors, const at::Tensor*& next) {
  return tensors ? std::optional(with_others(*tensors, next)) : std::nullopt;
}
template <class T>
const T& with_others(const T& argument, const at::Tensor*&) {
  return argument;
}

}  // namespace interop::autograd
