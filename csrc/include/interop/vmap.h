// Rules for torch.func.vmap: a rule calls an operator once, for all examples of a batch.
#pragma once

#include <c10/core/SymInt.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/dispatcher_kernel.h"
#include "interop/sizes.h"

namespace interop::vmap {

// The argument `randomness` of torch.func.vmap.
enum class Randomness { error, same, different };

// What a rule reads about the call, torch's VmapInfo and in_dims, and what it says about its results, the out_dims.
class VmapInfo {
 public:
  // The dimension of an argument that has the examples; -1 for an argument that all examples share, and for one that
  // is not a tensor. The second one is for a tensor in a list.
  virtual int64_t in_dim(int64_t argument) const = 0;
  virtual int64_t in_dim(int64_t argument, int64_t element) const = 0;

  // The dimension of a result that has the examples; -1 if all examples share the result. It is 0 if the rule does not
  // call this. For a list, this is about all of its tensors, or about one.
  virtual void set_out_dim(int64_t result, int64_t dim) = 0;
  virtual void set_out_dim(int64_t result, int64_t element, int64_t dim) = 0;

  virtual const c10::SymInt& sym_batch_size() const noexcept = 0;
  int64_t batch_size() const {
    return sizes::number(sym_batch_size(), "batch_size()");
  }
  virtual Randomness randomness() const noexcept = 0;

 protected:
  ~VmapInfo() = default;
};

// A rule with its type erased.
struct Rule {
  void (*function)() = nullptr;
  void (*call)(void (*function)(), VmapInfo& info, c10::IValue* values, std::vector<c10::IValue>& results) = nullptr;
  std::vector<bool> changes;                    // see dispatcher::KernelFunctor
  std::unique_ptr<c10::FunctionSchema> schema;  // its parameters after the VmapInfo, and its results
  std::vector<size_t> numbers = {};             // see autograd::SetupContext
};

namespace detail {

template <class F, class Whole>
struct RuleOf {
  static_assert(
      sizeof(F*) == 0,
      "a rule for vmap is `cdef at.Tensor rule(VmapInfo& info, const at.Tensor& x) except * nogil`: first the info, "
      "then the operator's arguments; it returns the operator's results");
};

template <class R, class... P, class Whole>
struct RuleOf<R(VmapInfo&, P...), Whole> {
  using Call = dispatcher::CallWithValues<R(VmapInfo&, P...), Whole>;

  static Rule make(R (*function)(VmapInfo&, P...)) {
    return {reinterpret_cast<void (*)()>(function), &call, {std::is_same_v<P, at::Tensor&>...}, Call::schema()};
  }

 private:
  static void call(void (*function)(), VmapInfo& info, c10::IValue* values, std::vector<c10::IValue>& results) {
    if constexpr (std::is_void_v<R>) {
      Call::call(function, info, values);
    } else {
      using Given = dispatcher::Result<R, Whole>;
      c10::impl::push_outputs<typename Given::Dispatched, false>::call(
          Given::give(Call::call(function, info, values)), &results);
    }
  }
};

}  // namespace detail

// The possible signatures of `function`; the schema selects one. See dispatcher::candidates.
template <class F>
std::vector<Rule> rules(F* function) {
  std::vector<Rule> result;
  result.push_back(detail::RuleOf<F, int64_t>::make(function));
  if constexpr (dispatcher::has_int<F>) {
    result.push_back(detail::RuleOf<F, bool>::make(function));
  }
  return result;
}

}  // namespace interop::vmap
