#include "dispatcher.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKey.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>
#include <map>

#include "autograd_kernels.h"
#include "interop/dispatcher_kernel.h"
#include "interop/free_threading.h"
#include "registry.h"
#include "signature.h"
#include "vmap.h"

namespace interop {

namespace {

std::string first_line(const std::string& text) {
  const size_t start = text.find_first_not_of('\n');
  return start == std::string::npos ? text : text.substr(start, text.find('\n', start) - start);
}

c10::OperatorName parse_name(const std::string& where, const std::string& name) {
  const size_t colons = name.find("::");
  const bool is_name = colons != std::string::npos && colons > 0 && colons + 2 < name.size() &&
                       name.find_first_of("() ") == std::string::npos &&
                       name.find("::", colons + 2) == std::string::npos;
  TORCH_CHECK_VALUE(
      is_name, where, ": an operator's name has the form 'namespace::name' or 'namespace::name.overload', got '", name,
      "'");
  const size_t dot = name.find('.', colons);
  return dot == std::string::npos ? c10::OperatorName(name, "")
                                  : c10::OperatorName(name.substr(0, dot), name.substr(dot + 1));
}

// The operators with this name before the dot, for a message; "" if there are none.
std::string overloads(const std::string& name) {
  std::string found;
  for (const c10::OperatorName& other : c10::Dispatcher::singleton().getAllOpNames()) {
    if (other.name == name) {
      found += (found.empty() ? "" : ", ") + c10::toString(other);
    }
  }
  return found;
}

c10::OperatorHandle find(const std::string& where, const std::string& name) {
  const c10::OperatorName parsed = parse_name(where, name);
  const auto found = c10::Dispatcher::singleton().findSchema(parsed);
  if (!found) {
    const std::string others = overloads(parsed.name);
    TORCH_CHECK(
        others.empty(), where, ": ", parsed.name, " has no overload '", parsed.overload_name,
        "'; choose from: ", others);
    TORCH_CHECK(
        false, where, ": there is no operator ", name, "; define it first: define(\"", name,
        "\", \"(Tensor a) -> Tensor\")");
  }
  return *found;
}

c10::DispatchKey parse_key(const std::string& where, const std::string& key) {
  static const std::map<std::string, std::string> others = {
      // devices, as torch.library.impl takes them
      {"cpu", "CPU"},
      {"cuda", "CUDA"},
      {"xpu", "XPU"},
      {"mps", "MPS"},
      {"hpu", "HPU"},
      {"mtia", "MTIA"},
      {"meta", "Meta"},
      {"default", "CompositeExplicitAutograd"},
      // their names in native_functions.yaml
      {"CompositeImplicit", "CompositeImplicitAutograd"},
      {"CompositeExplicit", "CompositeExplicitAutograd"}};
  const auto other = others.find(key);
  try {
    return c10::parseDispatchKey(other == others.end() ? key : other->second);
  } catch (const std::exception&) {
    TORCH_CHECK_VALUE(
        false, where, ": there is no dispatch key '", key,
        "'; give one such as CPU, CUDA, Meta, Autograd, AutocastCPU, CompositeImplicitAutograd, "
        "CompositeExplicitAutograd, or a device: cpu, cuda, meta, default");
  }
}

// Whether torch.compile calls kernels for this key while tracing, with sizes that may be symbolic.
bool is_traced(c10::DispatchKey key) {
  if (key == c10::DispatchKey::Meta || c10::isAliasDispatchKey(key)) {
    return true;
  }
  const auto functionality = c10::toFunctionalityKey(key);
  return functionality != c10::DispatchKey::Dense && functionality != c10::DispatchKey::Quantized &&
         functionality != c10::DispatchKey::Sparse && functionality != c10::DispatchKey::SparseCsr &&
         functionality != c10::DispatchKey::NestedTensor;
}

// Whether autograd runs before kernels for this key, so that they need not handle it.
bool is_below_autograd(c10::DispatchKey key) {
  if (c10::isAliasDispatchKey(key)) {
    return key == c10::DispatchKey::CompositeExplicitAutograd ||
           key == c10::DispatchKey::CompositeExplicitAutogradNonFunctional;
  }
  return c10::toFunctionalityKey(key) < c10::DispatchKey::AutogradOther;
}

void refuse_second(const std::string& where, const std::string& name, const std::string& key) {
  if (const std::string* by = registry::owner(name, key)) {
    TORCH_CHECK(false, where, ": the module ", *by, " has registered a kernel of ", name, " for ", key, " already");
  }
}

bool changes(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

// Describes the first difference between the schema and a function with the operator's arguments and results; "" if
// there is none.
template <class Way>
std::string difference(const c10::FunctionSchema& schema, const Way& way, const char* who) {
  std::string found = signature::difference(schema.arguments(), way.schema->arguments(), "argument", who);
  if (found.empty()) {
    found = signature::difference(schema.returns(), way.schema->returns(), "result", who);
  }
  for (size_t i = 0; found.empty() && i < way.changes.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (way.changes[i] && !changes(argument)) {
      found = c10::str(
          "argument ", i + 1, " '", argument.name(),
          "' is not changed in the schema; declare it const at.Tensor&, or write Tensor(a!) ", argument.name(),
          " in the schema");
    }
  }
  return found;
}

// The first of these ways to read a Cython function that `difference_of` finds no difference for, or null. `why`
// becomes the difference of the first way, for a message.
template <class Way, class Difference>
Way* fitting(std::vector<Way>& ways, std::string& why, Difference difference_of) {
  for (Way& way : ways) {
    std::string different = difference_of(way);
    if (different.empty()) {
      return &way;
    }
    why = why.empty() ? std::move(different) : why;
  }
  return nullptr;
}

std::string debug_name(const Module& module) {
  return std::string("module ") + module.name;
}

void add_kernel(
    const Module& module,
    const std::string& name,
    const c10::OperatorName& op,
    c10::DispatchKey key,
    c10::KernelFunction kernel,
    std::optional<c10::impl::CppSignature> signature = std::nullopt,
    std::unique_ptr<c10::FunctionSchema> schema = nullptr) {
  auto registered = c10::Dispatcher::singleton().registerImpl(
      op, key, std::move(kernel), std::move(signature), std::move(schema), debug_name(module));
  registry::add(module, name, c10::toString(key), std::move(registered));
}

// Adds a boxed kernel that was made for the schema of `op`. Because it is given that schema, torch raises when a module
// that is loaded again defines the operator with another one. As for torch's unboxed kernels without SymInts, SymInt is
// int in it.
void add_kernel_for_schema(
    const Module& module,
    const std::string& name,
    const c10::OperatorHandle& op,
    c10::DispatchKey key,
    c10::KernelFunction kernel) {
  auto schema = std::make_unique<c10::FunctionSchema>(op.schema().cloneWithRealTypes(/*with_symint=*/false));
  add_kernel(module, name, op.operator_name(), key, std::move(kernel), std::nullopt, std::move(schema));
}

}  // namespace

void RuntimeImpl::define(
    const Module& module, const std::string& name, const std::string& schema, const std::vector<at::Tag>& tags) {
  const std::string where = "define(\"" + name + "\")";
  const c10::OperatorName parsed = parse_name(where, name);
  auto& dispatcher = c10::Dispatcher::singleton();
  const CriticalSection section(registry::section());
  registry::begin(module);
  if (const auto existing = dispatcher.findSchema(parsed)) {
    const std::string* by = registry::owner(name, "");
    TORCH_CHECK(
        false, where, ": this operator is defined already", by ? " by the module " + *by : std::string(), ", as ",
        existing->schema(), "; an operator is defined once, and its kernels are added with impl()");
  }
  std::optional<c10::FunctionSchema> read;
  try {
    TORCH_CHECK(
        schema.find_first_not_of(" \n") == schema.find('('), "it must begin with the arguments, in parentheses");
    read = torch::jit::parseSchema(name + schema, /*allow_typevars=*/false);
  } catch (const std::exception& error) {
    TORCH_CHECK_VALUE(
        false, where, ": cannot read the schema '", schema,
        "', which has the form '(Tensor a, int n, float? x=None) -> Tensor': ", first_line(error.what()));
  }
  read->setAliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA);
  const bool changes_arguments = std::any_of(read->arguments().begin(), read->arguments().end(), changes);
  registry::add(module, name, "", dispatcher.registerDef(std::move(*read), debug_name(module), tags));
  if (changes_arguments) {
    add_kernel(module, name, parsed, c10::DispatchKey::ADInplaceOrView, boxed::with_new_versions());
  }
}

void RuntimeImpl::impl(
    const Module& module, const std::string& name, const std::string& key, std::vector<dispatcher::Candidate> ways) {
  const std::string where = "impl(\"" + name + "\", \"" + key + "\")";
  const c10::DispatchKey parsed = parse_key(where, key);
  const CriticalSection section(registry::section());
  registry::begin(module);
  const c10::OperatorHandle op = find(where, name);
  refuse_second(where, name, c10::toString(parsed));
  TORCH_CHECK(
      parsed != c10::DispatchKey::CompositeImplicitAutograd || !registry::owner(name, "Autograd"), where,
      ": the operator has a gradient, and this kernel would hide it; register it for CompositeExplicitAutograd");
  std::string why;
  dispatcher::Candidate* way =
      fitting(ways, why, [&](const dispatcher::Candidate& way) { return difference(op.schema(), way, "kernel"); });
  TORCH_CHECK_TYPE(way, where, ": ", why, ". The schema is ", op.schema());
  *way->below_autograd = is_below_autograd(parsed);
  std::vector<size_t> numbers = signature::numbers_for_symbols(op.schema().arguments(), way->schema->arguments());
  if (!numbers.empty() && is_traced(parsed)) {
    add_kernel_for_schema(module, name, op, parsed, boxed::with_numbers(way->function, std::move(numbers)));
  } else {
    add_kernel(
        module, name, op.operator_name(), parsed, std::move(way->function), way->signature, std::move(way->schema));
  }
}

void RuntimeImpl::register_autograd(
    const Module& module,
    const std::string& name,
    const autograd::Backward& backward,
    const autograd::Backward& jvp,
    std::vector<autograd::SetupContext> ways) {
  const std::string where = "register_autograd(\"" + name + "\")";
  const CriticalSection section(registry::section());
  registry::begin(module);
  const c10::OperatorHandle op = find(where, name);
  const c10::FunctionSchema& schema = op.schema();
  refuse_second(where, name, "Autograd");
  TORCH_CHECK(
      !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd), where,
      ": the operator has a kernel for CompositeImplicitAutograd, which has the gradients of the operators in it and "
      "which the dispatcher would prefer; register that kernel for CompositeExplicitAutograd");
  for (const auto* list : {&schema.arguments(), &schema.returns()}) {
    for (const c10::Argument& argument : *list) {
      TORCH_CHECK(
          !argument.alias_info(), where,
          ": the operator changes or returns an argument, so it has no gradient of this "
          "kind; define a functional operator. The schema is ",
          schema);
    }
  }
  size_t outputs = 0;
  for (const c10::Argument& result : schema.returns()) {
    const std::string type = signature::type_of(result);
    TORCH_CHECK_TYPE(
        type.find("Tensor") == std::string::npos || type == "Tensor" || type == "Tensor?" || type == "Tensor[]", where,
        ": there is no gradient for a result of type ", type, ". The schema is ", schema);
    outputs = type == "Tensor[]" || outputs == autograd::any ? autograd::any
                                                             : outputs + (type == "Tensor" || type == "Tensor?");
  }
  TORCH_CHECK_TYPE(
      backward.outputs == autograd::any || backward.outputs == outputs, where, ": the operator returns ",
      outputs == autograd::any ? "a list of tensors" : c10::str(outputs, outputs == 1 ? " tensor" : " tensors"),
      ", but backward takes the gradients of ", autograd::said(backward.outputs), ". The schema is ", schema);
  TORCH_CHECK_TYPE(
      backward.results == autograd::any || backward.results == schema.arguments().size(), where,
      ": the operator takes ", schema.arguments().size(), " arguments, but backward returns ", backward.results,
      " gradients; it must return one for each argument, at.Tensor() for those that have none. The schema is ", schema);
  autograd::refuse_unfit(where, jvp, schema.arguments().size(), outputs);
  std::vector<c10::Argument> values = schema.arguments();
  values.insert(values.end(), schema.returns().begin(), schema.returns().end());
  std::string why;
  autograd::SetupContext* way = fitting(ways, why, [&](const autograd::SetupContext& way) {
    return signature::difference(values, way.schema->arguments(), "argument");
  });
  TORCH_CHECK_TYPE(
      ways.empty() || way, where, ": setup_context takes ctx, the operator's arguments, and then its results, but ",
      why, ". The schema is ", schema);
  std::optional<autograd::SetupContext> setup;
  if (way) {
    way->numbers = signature::numbers_for_symbols(values, way->schema->arguments());
    setup = std::move(*way);
  }
  const auto definition = std::make_shared<const autograd::Definition>(
      autograd::Definition{name, backward, schema.arguments().size(), jvp});
  add_kernel_for_schema(
      module, name, op, c10::DispatchKey::Autograd, boxed::with_gradient(definition, std::move(setup)));
}

void RuntimeImpl::register_vmap(const Module& module, const std::string& name, std::vector<vmap::Rule> ways) {
  const std::string where = "register_vmap(\"" + name + "\")";
  constexpr auto key = c10::DispatchKey::FuncTorchBatched;
  const CriticalSection section(registry::section());
  registry::begin(module);
  const c10::OperatorHandle op = find(where, name);
  const std::string* by = registry::owner(name, c10::toString(key));
  TORCH_CHECK(
      !op.hasKernelForDispatchKey(key), where, ": the operator has a rule already, or another kernel for ",
      c10::toString(key), ", registered by ",
      by ? "the module " + *by : "code without Cython, such as torch.library.register_vmap");
  std::string why;
  vmap::Rule* way = fitting(ways, why, [&](const vmap::Rule& way) { return difference(op.schema(), way, "rule"); });
  TORCH_CHECK_TYPE(
      way, where, ": the rule takes info, and then the operator's arguments, and returns its results, but ", why,
      ". The schema is ", op.schema());
  way->numbers = signature::numbers_for_symbols(op.schema().arguments(), way->schema->arguments());
  add_kernel_for_schema(module, name, op, key, boxed::with_rule(std::move(*way)));
}

void RuntimeImpl::register_autocast(
    const Module& module, const std::string& name, const std::string& device, at::ScalarType dtype) {
  const std::string where = "register_autocast(\"" + name + "\", \"" + device + "\")";
  TORCH_CHECK_VALUE(
      dtype == at::ScalarType::Undefined || c10::isFloatingType(dtype), where,
      ": autocast casts to a floating-point dtype, got ", c10::toString(dtype));
  const c10::DispatchKey backend = parse_key(where, device);
  const c10::DispatchKey key = parse_key(where, std::string("Autocast") + c10::toString(backend));
  const CriticalSection section(registry::section());
  registry::begin(module);
  const c10::OperatorHandle op = find(where, name);
  refuse_second(where, name, c10::toString(key));
  c10::KernelFunction kernel = boxed::with_cast(key, c10::dispatchKeyToDeviceType(backend), dtype);
  add_kernel(module, name, op.operator_name(), key, std::move(kernel));
}

void RuntimeImpl::call(const std::string& name, std::vector<c10::IValue>& stack) {
  const c10::OperatorHandle op = find("Operator.call", name);
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  TORCH_CHECK_TYPE(
      stack.size() <= arguments.size(), name, " takes ", arguments.size(), " arguments, got ", stack.size(),
      ". The schema is ", op.schema());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    if (i == stack.size()) {
      TORCH_CHECK_TYPE(
          argument.default_value(), name, ": argument ", i + 1, " '", argument.name(), "' is missing. The schema is ",
          op.schema());
      stack.push_back(*argument.default_value());
      continue;
    }
    // Conversions for Cython's types: an integer such as 2 to a float, and a bint, which is a C int, to a bool.
    const auto optional = argument.type()->cast<c10::OptionalType>();
    const c10::TypeKind kind = (optional ? optional->getElementType() : argument.type())->kind();
    if (stack[i].isInt() && kind == c10::TypeKind::FloatType) {
      stack[i] = static_cast<double>(stack[i].toInt());
    } else if (stack[i].isInt() && kind == c10::TypeKind::BoolType && (stack[i].toInt() >> 1) == 0) {
      stack[i] = stack[i].toInt() == 1;
    }
    // A Scalar accepts a bool too.
    const bool is_truth_value = stack[i].isBool() && kind == c10::TypeKind::NumberType;
    // In C++ an undefined tensor stands for None.
    if (stack[i].isTensor() && !stack[i].toTensor().defined()) {
      stack[i] = argument.type()->kind() == c10::TypeKind::OptionalType ? c10::IValue() : stack[i];
      TORCH_CHECK_TYPE(
          stack[i].isNone(), name, ": argument ", i + 1, " '", argument.name(), "' is an undefined tensor");
    }
    // A tensor's IValue::type() includes its sizes and strides, so it is expensive.
    const bool fits = stack[i].isTensor() ? kind == c10::TypeKind::TensorType
                                          : is_truth_value || stack[i].type()->isSubtypeOf(*argument.type()) ||
                                                stack[i].type()->isSubtypeOf(*argument.real_type());
    TORCH_CHECK_TYPE(
        fits, name, ": argument ", i + 1, " '", argument.name(), "' is ", signature::type_of(argument), ", got ",
        stack[i].isTensor() ? "Tensor" : stack[i].type()->annotation_str(), ". The schema is ", op.schema());
  }
  op.callBoxed(&stack);
}

}  // namespace interop
