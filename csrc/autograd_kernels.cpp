#include "autograd_kernels.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "apply.h"
#include "signature.h"

namespace interop::boxed {

namespace {

using torch::jit::last;
using torch::jit::Stack;

// The tensors in a list of values, flattened in order, with their positions.
class Flat {
 public:
  Flat(c10::ArrayRef<c10::IValue> values, const std::vector<c10::Argument>& types) {
    for (size_t i = 0; i < values.size(); ++i) {
      const c10::Type& type = *types[i].type();
      parts_.push_back({append(values[i], type), is_list(values[i], type)});
    }
  }

  // The inputs point into this object.
  std::vector<autograd::Input> inputs() const {
    std::vector<autograd::Input> result;
    const at::Tensor* next = tensors.data();
    for (const Part& part : parts_) {
      result.push_back({next, part.count, part.is_list});
      next += part.count;
    }
    return result;
  }

  // Writes replacement tensors back to the positions of the originals.
  void put_back(autograd::Tensors& others, c10::IValue* values) const {
    at::Tensor* next = others.data();
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (values[i].isTensor()) {
        values[i] = std::move(*next);
      } else if (values[i].isTensorList()) {
        values[i] = c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(next, parts_[i].count));
      }
      next += parts_[i].count;
    }
  }

  std::vector<at::Tensor> tensors;

 private:
  struct Part {
    size_t count;  // of tensors
    bool is_list;
  };

  size_t append(const c10::IValue& value, const c10::Type& type) {
    const size_t before = tensors.size();
    if (value.isTensor()) {
      tensors.push_back(value.toTensor());
    } else if (value.isNone() && type == *c10::OptionalType::ofTensor()) {
      tensors.emplace_back();  // an absent tensor keeps its position
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        tensors.push_back(tensor);
      }
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        tensors.push_back(tensor.value_or(at::Tensor()));
      }
    }
    return tensors.size() - before;
  }

  // An absent list has no gradients, like an empty one.
  static bool is_list(const c10::IValue& value, const c10::Type& type) {
    if (!value.isNone() || type.kind() != c10::TypeKind::OptionalType) {
      return value.isTensorList() || value.isOptionalTensorList();
    }
    const c10::Type& element = *type.castRaw<c10::OptionalType>()->getElementType();
    return element == *c10::ListType::ofTensors() || element == *c10::ListType::ofOptionalTensors();
  }

  std::vector<Part> parts_;  // one for each value
};

class WithGradient final : public c10::OperatorKernel {
 public:
  WithGradient(std::shared_ptr<const autograd::Definition> definition, std::optional<autograd::SetupContext> setup)
      : definition_(std::move(definition)), setup_(std::move(setup)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    const size_t arguments = op.schema().arguments().size();
    const auto below = [&] {
      const at::AutoDispatchBelowAutograd guard;
      op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    };
    const Flat given(last(*stack, arguments), op.schema().arguments());
    const autograd::Wanted wanted = autograd::wanted(*definition_, given.tensors);
    if (!wanted) {
      below();
      return;
    }
    const std::vector<autograd::Input> inputs = given.inputs();
    Stack values;  // the kernel pops the arguments, and setup_context needs them with the results
    if (setup_) {
      values.reserve(arguments + op.schema().returns().size());
      values.assign(stack->end() - arguments, stack->end());
    }
    const std::vector<c10::Argument>& returns = op.schema().returns();
    autograd::Tensors outputs;
    std::optional<Flat> made;
    autograd::record(
        definition_, inputs, wanted,
        [&](autograd::Context& context) {
          // The jvp has the tangents, as in `apply`. In a transform, the modes are those of the outer levels.
          std::optional<c10::AutoFwGradMode> tangents;
          if (wanted.tangents && !autograd::has_transforms()) {
            tangents.emplace(false);
          }
          below();
          const c10::ArrayRef<c10::IValue> results = last(*stack, returns.size());
          made.emplace(results, returns);
          outputs.append(made->tensors.begin(), made->tensors.end());
          if (setup_) {
            values.insert(values.end(), results.begin(), results.end());
            if (!setup_->numbers.empty()) {
              std::vector<c10::Argument> taken = op.schema().arguments();
              taken.insert(taken.end(), returns.begin(), returns.end());
              signature::refuse_symbols(definition_->name + ": setup_context", taken, setup_->numbers, values);
            }
            const at::AutoDispatchBelowAutograd guard;
            setup_->call(setup_->function, context, values.data());
          }
        },
        outputs);
    made->put_back(outputs, stack->data() + stack->size() - returns.size());
  }

 private:
  std::shared_ptr<const autograd::Definition> definition_;
  std::optional<autograd::SetupContext> setup_;
};

class WithNumbers final : public c10::OperatorKernel {
 public:
  WithNumbers(c10::KernelFunction kernel, std::vector<size_t> numbers)
      : kernel_(std::move(kernel)), numbers_(std::move(numbers)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    signature::refuse_symbols(c10::toString(op.operator_name()), arguments, numbers_, last(*stack, arguments.size()));
    kernel_.callBoxed(op, keys, stack);
  }

 private:
  c10::KernelFunction kernel_;
  std::vector<size_t> numbers_;
};

class WithCast final : public c10::OperatorKernel {
 public:
  WithCast(c10::DispatchKey key, at::DeviceType device, at::ScalarType dtype)
      : key_(key), device_(device), dtype_(dtype) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const c10::impl::ExcludeDispatchKeyGuard guard(key_);
    const at::ScalarType dtype =
        dtype_ == at::ScalarType::Undefined ? at::autocast::get_autocast_dtype(device_) : dtype_;
    for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
      c10::IValue& value = (*stack)[i];
      if (value.isTensor()) {
        value = at::autocast::cached_cast(dtype, value.toTensor(), device_);
      } else if (value.isTensorList()) {
        // As a TensorList, because a vector would select the template that returns non-tensors unchanged.
        value = at::autocast::cached_cast(dtype, at::TensorList(value.toTensorVector()), device_);
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
          list.push_back(at::autocast::cached_cast(dtype, tensor, device_));
        }
        value = std::move(list);
      }
    }
    op.callBoxed(stack);
  }

 private:
  c10::DispatchKey key_;
  at::DeviceType device_;
  at::ScalarType dtype_;
};

class WithNewVersions final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    const c10::ArrayRef<c10::IValue> values = last(*stack, arguments.size());
    refuse_gradient(op, values);
    std::vector<at::Tensor> changed;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (changes(arguments[i])) {
        const Flat found(values[i], {arguments[i]});
        changed.insert(changed.end(), found.tensors.begin(), found.tensors.end());
      }
    }
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
    }
    for (const at::Tensor& tensor : changed) {
      if (tensor.defined() && !tensor.is_inference()) {
        torch::autograd::impl::bump_version(tensor);
      }
    }
  }

 private:
  static bool changes(const c10::Argument& argument) {
    return argument.alias_info() && argument.alias_info()->isWrite();
  }

  // The graph would contain neither the change nor its inputs, and gradients would be wrong. An Autograd kernel that
  // handles the change calls the operator with the key excluded.
  static void refuse_gradient(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values) {
    if (!at::GradMode::is_enabled() ||
        c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality)) {
      return;
    }
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      for (const at::Tensor& tensor : Flat(values[i], {arguments[i]}).tensors) {
        TORCH_CHECK(
            !tensor.defined() || !tensor.requires_grad(), op.operator_name(), " changes its argument '",
            changed_by(arguments, i),
            changes(arguments[i]) ? "', which requires grad, and has no gradient; "
                                  : "', and has no gradient for '" + arguments[i].name() + "', which requires grad; ",
            "call it under torch.no_grad(), or with ", arguments[i].name(), ".detach()");
      }
    }
  }

  // The changed argument that a message about argument `index` names.
  static const std::string& changed_by(const std::vector<c10::Argument>& arguments, size_t index) {
    return changes(arguments[index]) ? arguments[index].name()
                                     : std::find_if(arguments.begin(), arguments.end(), changes)->name();
  }
};

}  // namespace

c10::KernelFunction with_gradient(
    std::shared_ptr<const autograd::Definition> definition, std::optional<autograd::SetupContext> setup) {
  return c10::KernelFunction::makeFromBoxedFunctor(
      std::make_unique<WithGradient>(std::move(definition), std::move(setup)));
}

c10::KernelFunction with_numbers(c10::KernelFunction kernel, std::vector<size_t> numbers) {
  return c10::KernelFunction::makeFromBoxedFunctor(
      std::make_unique<WithNumbers>(std::move(kernel), std::move(numbers)));
}

c10::KernelFunction with_cast(c10::DispatchKey key, at::DeviceType device, at::ScalarType dtype) {
  return c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<WithCast>(key, device, dtype));
}

c10::KernelFunction with_new_versions() {
  return c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<WithNewVersions>());
}

}  // namespace interop::boxed
