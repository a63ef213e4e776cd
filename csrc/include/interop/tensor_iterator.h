// at::TensorIterator for Cython: runs elementwise operations and reductions with loops written in Cython.
//
// torch's own iterator trusts its caller: it may borrow tensors that no longer exist, accepts any device, and hands
// out data pointers of any kind of tensor. This iterator owns its tensors, and build() raises for a tensor without
// values in CPU memory (check_memory.h) before any pointer is read.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interop/check_memory.h"
#include "interop/graph.h"
#include "interop/parallel.h"

namespace interop {

// data: a pointer to the first element of each tensor, outputs first. strides: in bytes, in the same order.
using Loop = void (*)(char** data, const int64_t* strides, int64_t n, void* context);
// n elements along the first dimension, m along the second, whose strides follow those of the first.
using Loop2d = void (*)(char** data, const int64_t* strides, int64_t n, int64_t m, void* context);

inline constexpr int64_t default_grain = at::internal::GRAIN_SIZE;

namespace detail {

// Wraps a loop as the two-dimensional loop that ATen needs. An error ends it early.
inline auto two_dimensional(Loop loop, void* context, int tensors) {
  const auto run = [=](char** data, const int64_t* strides, int64_t n, int64_t m) {
    Callback call;
    c10::SmallVector<char*, 4> row(data, data + tensors);
    for (int64_t j = 0; j < m && !call.failed(); ++j) {
      if (j > 0) {
        for (int i = 0; i < tensors; ++i) {
          row[i] += strides[tensors + i];
        }
      }
      // A copy, because the loop may move its pointers.
      c10::SmallVector<char*, 4> given(row);
      loop(given.data(), strides, n, context);
    }
    call.check();
  };
  return LoopBody(run, at::in_parallel_region);
}

inline auto two_dimensional(Loop2d loop, void* context, int) {
  const auto run = [=](char** data, const int64_t* strides, int64_t n, int64_t m) {
    call_cython(loop, data, strides, n, m, context);
  };
  return LoopBody(run, at::in_parallel_region);
}

}  // namespace detail

class TensorIterator;

// The tensors to iterate over, and the options, which are those of torch's TensorIteratorConfig with its defaults.
class TensorIteratorConfig {
 public:
  // build() makes an undefined output.
  TensorIteratorConfig& add_output(const at::TensorBase& tensor) {
    TORCH_CHECK_VALUE(inputs_.empty(), "outputs must be added before inputs");
    outputs_.emplace_back(tensor);
    return *this;
  }
  TensorIteratorConfig& add_input(const at::TensorBase& tensor) {
    inputs_.emplace_back(tensor);
    return *this;
  }
  TensorIteratorConfig& check_all_same_dtype(bool value) {
    same_dtype_ = value;
    return *this;
  }
  TensorIteratorConfig& promote_inputs_to_common_dtype(bool value) {
    promote_ = value;
    return *this;
  }
  TensorIteratorConfig& promote_integer_inputs_to_float(bool value) {
    to_float_ = value;
    return *this;
  }
  TensorIteratorConfig& cast_common_dtype_to_outputs(bool value) {
    cast_ = value;
    return *this;
  }
  TensorIteratorConfig& enforce_safe_casting_to_output(bool value) {
    safe_ = value;
    return *this;
  }
  TensorIteratorConfig& enforce_linear_iteration(bool value) {
    linear_ = value;
    return *this;
  }
  TensorIteratorConfig& resize_outputs(bool value) {
    resize_ = value;
    return *this;
  }
  TensorIteratorConfig& is_reduction(bool value) {
    reduction_ = value;
    return *this;
  }
  // The dtype of outputs that build() makes.
  TensorIteratorConfig& declare_static_dtype(c10::ScalarType dtype) {
    dtype_ = dtype;
    return *this;
  }
  // Disables broadcasting: all defined tensors must have this shape.
  TensorIteratorConfig& declare_static_shape(at::IntArrayRef shape) {
    shape_ = shape.vec();
    return *this;
  }

  TensorIterator build() const;

 private:
  // Whether an output could have a gradient: one of floating-point or complex numbers, not bools or integers.
  bool has_gradient() const {
    return std::any_of(outputs_.begin(), outputs_.end(), [&](const at::TensorBase& output) {
      const auto dtype = output.defined() ? output.scalar_type() : dtype_.value_or(at::kFloat);
      return c10::isFloatingType(dtype) || c10::isComplexType(dtype);
    });
  }

  void check(const at::TensorBase& tensor, const char* kind, size_t index) const {
    const std::string name = kind + (" " + std::to_string(index));
    check_data(tensor, name.c_str());
    // torch uses the tensor's strides for this shape without a check.
    TORCH_CHECK_VALUE(
        !shape_ || tensor.sizes() == *shape_, ArgumentName{name.c_str()}, " must have the static shape ",
        at::IntArrayRef(shape_.value_or(std::vector<int64_t>())), ", got ", tensor.sizes());
  }

  std::vector<at::TensorBase> outputs_, inputs_;
  bool same_dtype_ = true, promote_ = false, to_float_ = false, cast_ = false, safe_ = false, linear_ = false,
       resize_ = true;
  bool reduction_ = false;
  std::optional<c10::ScalarType> dtype_;
  std::optional<std::vector<int64_t>> shape_;
};

// Copies share one iterator.
class TensorIterator {
 public:
  TensorIterator() = default;  // for Cython, which declares a variable before it assigns to it

  // `part`: it is part of another iterator, which casts their shared outputs.
  explicit TensorIterator(at::TensorIterator&& built, bool part = false)
      : state_(std::make_shared<State>(std::move(built), part)) {}

  // torch's own kinds of operations. They make an undefined output, and output(0) returns it.
  static TensorIterator nullary_op(const at::TensorBase& out) {
    return TensorIteratorConfig().check_all_same_dtype(false).resize_outputs(false).add_output(out).build();
  }
  static TensorIterator unary_op(const at::TensorBase& out, const at::TensorBase& a) {
    return TensorIteratorConfig().add_output(out).add_input(a).build();
  }
  static TensorIterator unary_float_op(const at::TensorBase& out, const at::TensorBase& a) {
    return promoting(true, out, {a});
  }
  static TensorIterator binary_op(const at::TensorBase& out, const at::TensorBase& a, const at::TensorBase& b) {
    return promoting(false, out, {a, b});
  }
  static TensorIterator binary_float_op(const at::TensorBase& out, const at::TensorBase& a, const at::TensorBase& b) {
    return promoting(true, out, {a, b});
  }
  // The loop writes bools.
  static TensorIterator comparison_op(const at::TensorBase& out, const at::TensorBase& a, const at::TensorBase& b) {
    TORCH_CHECK_TYPE(
        !out.defined() || out.scalar_type() == at::kBool, "argument 'output 0' must have dtype torch.bool, got ",
        out.defined() ? detail::dtype_name(out.scalar_type()) : "");
    TensorIteratorConfig config;
    config.promote_inputs_to_common_dtype(true).declare_static_dtype(at::kBool);
    return config.add_output(out).add_input(a).add_input(b).build();
  }
  // The output has size 1 in each reduced dimension, and holds the initial value of the reduction.
  static TensorIterator reduce_op(const at::TensorBase& out, const at::TensorBase& a) {
    TensorIteratorConfig config;
    config.is_reduction(true).resize_outputs(false).promote_inputs_to_common_dtype(true);
    return config.add_output(out).add_input(a).build();
  }

  int ndim() const {
    return it().ndim();
  }
  int ntensors() const {
    return it().ntensors();
  }
  int noutputs() const {
    return it().noutputs();
  }
  int ninputs() const {
    return it().ninputs();
  }
  int64_t numel() const {
    return it().numel();
  }
  int64_t num_output_elements() const {
    return it().num_output_elements();
  }
  int num_reduce_dims() const {
    return it().num_reduce_dims();
  }
  bool is_contiguous() const {
    return it().is_contiguous();
  }
  at::IntArrayRef shape() const {
    return it().shape();
  }
  // In bytes.
  at::IntArrayRef strides(int64_t tensor) const {
    return it().strides(checked(tensor, ntensors(), "tensor"));
  }
  c10::ScalarType common_dtype() const {
    // torch >= 2.13 has a function to check this first.
    try {
      return it().common_dtype();
    } catch (const c10::Error&) {
      TORCH_CHECK_VALUE(false, "this TensorIterator has no common dtype; build it with promote_inputs_to_common_dtype");
    }
  }
  // The dtype of the elements that the loop gets.
  c10::ScalarType dtype(int64_t tensor) const {
    return it().dtype(checked(tensor, ntensors(), "tensor"));
  }
  // The output for the operation's caller. It is complete when the loop has run, even if its elements are cast.
  at::Tensor output(int64_t output) const {
    const at::OperandInfo& operand = it().operand(static_cast<int>(checked(output, noutputs(), "output")));
    return operand.original_tensor_base().defined() ? operand.original_tensor() : operand.tensor();
  }
  // The tensor that the loop reads, perhaps a converted copy.
  at::Tensor input(int64_t input) const {
    return it().input(checked(input, ninputs(), "input"));
  }

  // Calls the loop for all elements on several threads, in parts of about `grain` elements or more, then casts the
  // outputs. A reduction runs on one thread, because its parts share outputs.
  template <class F>
  void for_each(F* loop, void* context, int64_t grain = default_grain) {
    detail::check_grain(grain);
    run(loop, [&](at::TensorIteratorBase& it) {
      const auto function = detail::two_dimensional(loop, context, it.ntensors());
      if (it.num_reduce_dims() > 0) {
        it.serial_for_each(function, {0, it.numel()});
      } else {
        it.for_each(function, grain);
      }
    });
  }

  // The loop folds the input into the output. It may get parts of the input with separate outputs, which start as
  // copies of the output, and then get these outputs as input.
  template <class F>
  void parallel_reduce(F* loop, void* context) {
    TORCH_CHECK_VALUE(
        ntensors() == 2 && noutputs() == 1, "parallel_reduce takes an iterator with one output and one input, got ",
        noutputs(), " and ", ninputs());
    TORCH_CHECK_TYPE(
        dtype(0) == dtype(1), "parallel_reduce takes an output and an input of the same dtype, got ",
        detail::dtype_name(dtype(0)), " and ", detail::dtype_name(dtype(1)));
    run(loop, [&](at::TensorIteratorBase& it) {
      const auto function = detail::two_dimensional(loop, context, it.ntensors());
      if (it.num_reduce_dims() > 0) {
        it.parallel_reduce(function);
      } else {
        it.for_each(function);
      }
    });
  }

  // Calls function(part, context) on several threads, with an iterator for each element of the output.
  void foreach_reduced_elt(void (*function)(TensorIterator&, void*), void* context) {
    run(function, [&](at::TensorIteratorBase& it) {
      const detail::LoopBody body([=, below = !records_graph()](at::TensorIteratorBase& part) {
        const BelowAutograd mode(below);
        TensorIterator owned(at::TensorIterator(part), true);
        detail::call_cython(function, std::ref(owned), context);
      });
      it.foreach_reduced_elt(body);
    });
  }

 private:
  struct State {
    State(at::TensorIterator&& built, bool is_part) : iterator(std::move(built)), part(is_part) {}
    at::TensorIterator iterator;
    bool part;
    bool cast = false;
  };

  static TensorIterator promoting(
      bool to_float, const at::TensorBase& out, std::initializer_list<at::TensorBase> inputs) {
    TensorIteratorConfig config;
    config.promote_inputs_to_common_dtype(true).promote_integer_inputs_to_float(to_float);
    config.cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true).add_output(out);
    for (const at::TensorBase& input : inputs) {
      config.add_input(input);
    }
    return config.build();
  }

  at::TensorIterator& it() const {
    TORCH_CHECK_VALUE(
        state_, "this TensorIterator has not been built; begin with a TensorIteratorConfig or a binary_op");
    return state_->iterator;
  }

  static int64_t checked(int64_t index, int64_t count, const char* what) {
    TORCH_CHECK_INDEX(0 <= index && index < count, what, " ", index, " of a TensorIterator that has ", count);
    return index;
  }

  template <class F, class Run>
  void run(F* loop, const Run& body) {
    at::TensorIterator& iterator = it();
    detail::check_function(loop);
    // Casting has released the copies that the iterator's pointers point into.
    TORCH_CHECK(!state_->cast, "this TensorIterator has run and has cast its outputs; build another one");
    const auto keep = state_;  // the loop may assign to *this
    const NoGil no_gil;
    body(iterator);
    if (keep->part) {
      return;
    }
    for (int i = 0; i < iterator.noutputs(); ++i) {
      keep->cast |= iterator.operand(i).original_tensor_base().defined();
    }
    const at::AutoDispatchBelowADInplaceOrView below;  // nothing here belongs to a graph
    iterator.cast_outputs();
  }

  std::shared_ptr<State> state_;
};

inline TensorIterator TensorIteratorConfig::build() const {
  TORCH_CHECK_VALUE(!outputs_.empty() || !inputs_.empty(), "a TensorIterator needs a tensor");
  TORCH_CHECK_VALUE(
      promote_ || !to_float_, "promote_integer_inputs_to_float needs promote_inputs_to_common_dtype as well");
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(true);
  // torch rejects options that a static dtype or shape makes pointless.
  config.resize_outputs(resize_ && !shape_).is_reduction(reduction_).enforce_safe_casting_to_output(safe_);
  config.check_all_same_dtype(same_dtype_ && !promote_ && !cast_ && !dtype_).enforce_linear_iteration(linear_);
  // The order matters: torch's setters check each other.
  if (promote_) {
    config.promote_inputs_to_common_dtype(true).promote_integer_inputs_to_float(to_float_);
  }
  if (cast_) {
    config.cast_common_dtype_to_outputs(true);
  }
  if (dtype_) {
    config.declare_static_dtype_and_device(*dtype_, at::kCPU);
  }
  if (shape_) {
    config.declare_static_shape(*shape_);
  }
  bool makes_output = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].defined()) {
      check(outputs_[i], "output", i);
    } else {
      makes_output = true;
      TORCH_CHECK_VALUE(!inputs_.empty() || (dtype_ && shape_), "output ", i, " needs a static dtype and shape");
      TORCH_CHECK_VALUE(!reduction_, "output ", i, " of a reduction must be defined, and contain its initial values");
    }
    config.add_owned_output(outputs_[i]);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    check_not_traced(inputs_[i], "at.TensorIterator", "input " + std::to_string(i));
    check(inputs_[i], "input", i);
    if (has_gradient()) {
      check_no_graph(inputs_[i], "at.TensorIterator", "input " + std::to_string(i));
    }
    config.add_owned_const_input(inputs_[i]);
    // torch only asserts that it knows the dtype of the outputs, so check it here.
    TORCH_CHECK_TYPE(
        promote_ || !(cast_ || safe_ || (makes_output && !dtype_)) ||
            inputs_[i].scalar_type() == inputs_[0].scalar_type(),
        "argument 'input ", i, "' must have the dtype of the others, ", detail::dtype_name(inputs_[0].scalar_type()),
        ", got ", detail::dtype_name(inputs_[i].scalar_type()),
        "; convert it, or build with promote_inputs_to_common_dtype");
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].defined()) {
      check_write(outputs_[i], ("output " + std::to_string(i)).c_str());
    }
  }
  const at::AutoDispatchBelowADInplaceOrView below;  // converted copies belong to no graph
  return TensorIterator(config.build());
}

}  // namespace interop
