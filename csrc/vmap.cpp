#include "vmap.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <optional>

#include "signature.h"

namespace interop::boxed {

namespace {

using at::functorch::RandomnessType;
using torch::jit::last;
using torch::jit::Stack;
using vmap::Randomness;

static_assert(
    static_cast<int>(Randomness::error) == static_cast<int>(RandomnessType::Error) &&
    static_cast<int>(Randomness::same) == static_cast<int>(RandomnessType::Same) &&
    static_cast<int>(Randomness::different) == static_cast<int>(RandomnessType::Different));

// The same value with other tensors in it, in order; those that are missing stay so. Other values stay as they are.
template <class F>
c10::IValue with_tensors(const c10::IValue& value, F other) {
  if (value.isTensor()) {
    return other(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(other(tensor));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      const at::Tensor found = other(tensor.value_or(at::Tensor()));
      list.push_back(tensor ? std::optional(found) : std::nullopt);
    }
    return list;
  }
  return value;
}

// One call of a rule.
class Call final : public vmap::VmapInfo {
 public:
  Call(const c10::OperatorHandle& op, const at::functorch::DynamicLayer& layer)
      : op_(op),
        level_(layer.layerId()),
        batch_size_(layer.batchSize()),
        randomness_(static_cast<Randomness>(layer.randomness())) {}

  // An argument with the tensors that hold all examples.
  c10::IValue unwrapped(const c10::IValue& argument, const c10::AliasInfo* alias) {
    Dims& dims = in_.emplace_back();
    dims.is_list = argument.isTensorList() || argument.isOptionalTensorList();
    return with_tensors(argument, [&](const at::Tensor& tensor) {
      auto [value, dim] = at::functorch::unwrapTensorAtLevel(tensor, level_);
      dims.each.push_back(dim.value_or(-1));
      has_examples_ = has_examples_ || dim;
      if (alias) {
        returned_.push_back({alias, value, tensor});
      }
      return value;
    });
  }

  // Whether an argument has examples at this level.
  bool has_examples() const noexcept {
    return has_examples_;
  }

  // A result as the tensors of vmap, one for each tensor of the rule's result. `alias` is of the schema: with it, a
  // tensor may be an argument, and then it is that very tensor of vmap.
  c10::IValue wrapped(const c10::IValue& result, size_t index, const c10::AliasInfo* alias) const {
    int64_t elements = 0;
    c10::IValue given = with_tensors(result, [&](const at::Tensor& tensor) {
      const int64_t dim = out_dim(static_cast<int64_t>(index), elements++);
      const auto argument = std::find_if(returned_.begin(), returned_.end(), [&](const Returned& one) {
        return alias && one.alias->beforeSets() == alias->beforeSets() && one.inside.is_same(tensor);
      });
      if (argument != returned_.end()) {
        return argument->outside;
      }
      if (!tensor.defined() || dim == -1) {
        return tensor;
      }
      TORCH_CHECK_VALUE(
          !at::functorch::isBatchedAtLevel(tensor, level_), name(), ": result ", index + 1,
          " of the rule for vmap is a tensor of vmap already, as a random operator makes under "
          "randomness='different'; then call info.set_out_dim(result, -1)");
      TORCH_CHECK_INDEX(
          dim < tensor.dim(), name(), ": result ", index + 1, " of the rule for vmap has ", tensor.dim(),
          " dimensions, so the examples cannot be in dimension ", dim,
          "; info.set_out_dim(result, dim) says where they are, by default in 0, and with -1 that there are none");
      const auto found = tensor.sym_size(dim).maybe_as_int(), wanted = batch_size_.maybe_as_int();
      TORCH_CHECK_VALUE(
          !found || !wanted || *found == *wanted, name(), ": result ", index + 1,
          " of the rule for vmap has the shape ", tensor.sym_sizes(), ", and dimension ", dim,
          " is to have the examples, which are ", batch_size_, "; info.set_out_dim(result, dim) says where they are");
      return at::functorch::makeBatched(tensor, dim, level_);
    });
    for (const Out& out : out_) {
      TORCH_CHECK_INDEX(
          std::cmp_not_equal(out.result, index) || out.element < elements, name(), ": set_out_dim(", index, ", ",
          out.element, ", ", out.dim, "): result ", index, " has ", elements, elements == 1 ? " tensor" : " tensors");
    }
    return given;
  }

  int64_t in_dim(int64_t argument) const override {
    const Dims& dims = dims_of(argument);
    TORCH_CHECK_TYPE(
        !dims.is_list, name(), ": argument ", argument,
        " is a list of tensors; in_dim(argument, element) is about one of them");
    return dims.each.empty() ? -1 : dims.each[0];
  }

  int64_t in_dim(int64_t argument, int64_t element) const override {
    const Dims& dims = dims_of(argument);
    TORCH_CHECK_INDEX(
        element >= 0 && std::cmp_less(element, dims.each.size()), name(), ": in_dim(", argument, ", ", element,
        "): the argument has ", dims.each.size(), " tensors");
    return dims.each[element];
  }

  void set_out_dim(int64_t result, int64_t dim) override {
    set(result, ALL, dim);
  }

  void set_out_dim(int64_t result, int64_t element, int64_t dim) override {
    TORCH_CHECK_INDEX(element >= 0, name(), ": set_out_dim: the element is negative, ", element);
    set(result, element, dim);
  }

  const c10::SymInt& sym_batch_size() const noexcept override {
    return batch_size_;
  }

  Randomness randomness() const noexcept override {
    return randomness_;
  }

 private:
  static constexpr int64_t ALL = -1;

  // Of one argument.
  struct Dims {
    bool is_list = false;
    c10::SmallVector<int64_t, 2> each;  // tensor
  };

  struct Out {
    int64_t result, element, dim;
  };

  // A tensor of an argument that the schema marks as a possible result, for the rule and for vmap.
  struct Returned {
    const c10::AliasInfo* alias;
    at::Tensor inside, outside;
  };

  std::string name() const {
    return c10::toString(op_.operator_name());
  }

  const Dims& dims_of(int64_t argument) const {
    TORCH_CHECK_INDEX(
        argument >= 0 && std::cmp_less(argument, in_.size()), name(), ": in_dim(", argument, "): there are ",
        in_.size(), " arguments, counted from 0");
    return in_[argument];
  }

  void set(int64_t result, int64_t element, int64_t dim) {
    const size_t results = op_.schema().returns().size();
    TORCH_CHECK_INDEX(
        result >= 0 && std::cmp_less(result, results), name(), ": set_out_dim(", result, ", ...): there are ", results,
        " results, counted from 0");
    TORCH_CHECK_INDEX(
        dim >= -1, name(), ": set_out_dim(", result, ", ...): the dimension is ", dim,
        "; give one that is counted from 0, or -1 if all examples share the result");
    out_.push_back({result, element, dim});
  }

  int64_t out_dim(int64_t result, int64_t element) const {
    for (size_t i = out_.size(); i > 0; --i) {
      const Out& out = out_[i - 1];
      if (out.result == result && (out.element == ALL || out.element == element)) {
        return out.dim;
      }
    }
    return 0;
  }

  const c10::OperatorHandle& op_;
  int64_t level_;
  c10::SymInt batch_size_;
  Randomness randomness_;
  bool has_examples_ = false;
  c10::SmallVector<Dims, 4> in_;
  c10::SmallVector<Out, 2> out_;  // the last one counts
  std::vector<Returned> returned_;
};

class WithRule final : public c10::OperatorKernel {
 public:
  explicit WithRule(vmap::Rule rule) : rule_(std::move(rule)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const auto& layers = at::functorch::getDynamicLayerStack();
    TORCH_CHECK(
        !layers.empty(), op.operator_name(),
        ": an argument is a tensor of torch.func.vmap, which has returned already; use such tensors only in the "
        "function that vmap calls");
    Call call(op, layers.back());
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    const c10::ArrayRef<c10::IValue> given = last(*stack, arguments.size());
    Stack values, results;
    values.reserve(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      values.push_back(call.unwrapped(given[i], arguments[i].alias_info()));
    }
    const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::FuncTorchBatched);
    if (!call.has_examples()) {
      op.callBoxed(stack);
      return;
    }
    signature::refuse_symbols(
        c10::toString(op.operator_name()) + ": the rule for vmap", arguments, rule_.numbers, values);
    rule_.call(rule_.function, call, values.data(), results);
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = call.wrapped(results[i], i, op.schema().returns()[i].alias_info());
    }
    torch::jit::drop(*stack, arguments.size());
    stack->insert(stack->end(), std::make_move_iterator(results.begin()), std::make_move_iterator(results.end()));
  }

 private:
  vmap::Rule rule_;
};

}  // namespace

c10::KernelFunction with_rule(vmap::Rule rule) {
  return c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<WithRule>(std::move(rule)));
}

}  // namespace interop::boxed
