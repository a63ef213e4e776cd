// The compiled half of interop/_transforms.py. torch calls forward once, below all transforms, and asks each level
// which tensors to save for backward. So forward is recorded by the positions of tensors.
#include "transforms.h"

#include <algorithm>

#include "interop/callback.h"
#include "interop/tensor.h"
#include "node.h"

namespace interop::autograd {

namespace {

// One call, while it runs.
struct Call {
  const std::shared_ptr<const Definition>& definition;
  c10::ArrayRef<Input> inputs;
  c10::function_ref<void(Context&, const at::Tensor*)> forward;
  Tensors& outputs;
  size_t count = 0;  // of outputs
};

// The context of forward. It holds the state afterwards.
class Record final : public ContextBase {
 public:
  explicit Record(const Call& call) : definition(call.definition), ranges(ranges_of(call.inputs)) {}

  at::Tensor saved_tensor(int64_t index) override {
    TORCH_CHECK_INDEX(
        std::cmp_less(index, kept.size()) && index >= 0, definition->name, ": ctx.saved_tensor(", index,
        "): forward has saved ", kept.size(), " tensors");
    return kept[index];
  }
  size_t saved_tensors() override {
    return kept.size();
  }
  bool needs_input_grad(int64_t) override {
    return true;  // each level has a graph of its own
  }
  void set_materialize_grads(bool value) override {
    materialize = value;
  }

  std::shared_ptr<const Definition> definition;
  Ranges ranges;
  std::vector<at::Tensor> kept, kept_for_jvp;
  bool has_saved = false, has_saved_for_jvp = false, materialize = true;
  size_t for_backward = 0;  // number of kept tensors; those for jvp come after them

  // The positions of tensors that forward has saved or marked, among its inputs and then its outputs; -1 for
  // undefined tensors. A tensor that is in neither becomes an output.
  std::vector<int64_t> places(const std::vector<at::Tensor>& tensors, std::vector<at::Tensor>& everything) {
    std::vector<int64_t> found;
    for (const at::Tensor& tensor : tensors) {
      const auto is_same = [&](const at::Tensor& other) { return other.is_same(tensor); };
      const auto place = std::find_if(everything.begin(), everything.end(), is_same);
      found.push_back(tensor.defined() ? place - everything.begin() : -1);
      if (tensor.defined() && place == everything.end()) {
        everything.push_back(tensor);
      }
    }
    return found;
  }
  const std::vector<at::Tensor>& dirty() const {
    return dirty_;
  }
  const std::vector<at::Tensor>& non_differentiable() const {
    return non_differentiable_;
  }

 protected:
  void save(const at::Tensor* const* tensors, size_t count, bool for_jvp) override {
    bool& before = for_jvp ? has_saved_for_jvp : has_saved;
    TORCH_CHECK(!before || for_jvp, definition->name, ": ctx.save_for_backward was called twice; give it all at once");
    before = true;
    std::vector<at::Tensor>& list = for_jvp ? kept_for_jvp : kept;
    list.clear();
    for (size_t i = 0; i < count; ++i) {
      list.push_back(*tensors[i]);
    }
  }
};

constexpr const char* CALL = "interop.Call";
constexpr const char* RECORD = "interop.Record";

template <class T>
T& in_capsule(PyObject* capsule, const char* name) {
  return *static_cast<T*>(checked(PyCapsule_GetPointer(capsule, name)));
}

OwnedRef tuple_of(c10::ArrayRef<at::Tensor> tensors) {
  OwnedRef tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(tensors[i]));
  }
  return tuple;
}

OwnedRef tuple_of(const std::vector<int64_t>& numbers) {
  OwnedRef tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(numbers.size()))));
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(numbers[i])));
  }
  return tuple;
}

std::vector<at::Tensor> tensors_in(PyObject* tuple) {
  std::vector<at::Tensor> tensors;
  const Py_ssize_t size = checked(PyTuple_Size(tuple));
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    tensors.push_back(item == Py_None ? at::Tensor() : unpack(item));
  }
  return tensors;
}

}  // namespace

// interop/_core.pyx calls these with the GIL held.

// Calls forward. Returns the record, the outputs, the positions of tensors that it saved, changed in place and marked
// as not differentiable, and whether gradients are materialized.
PyObject* transformed_forward(PyObject* capsule, PyObject* tensors) {
  Call& call = in_capsule<Call>(capsule, CALL);
  auto record = std::make_unique<Record>(call);
  std::vector<at::Tensor> everything = tensors_in(tensors);
  const size_t inputs = everything.size();
  call.outputs.clear();
  {
    const NoGil released;
    // As in torch.autograd.Function: a tensor that forward uses without having it as an argument is no part of the
    // graph.
    const at::AutoGradMode mode(false);
    call.forward(*record, everything.data());
  }
  call.count = call.outputs.size();
  everything.insert(everything.end(), call.outputs.begin(), call.outputs.end());
  const size_t known = everything.size();
  std::vector<int64_t> kept = record->places(record->kept, everything);
  record->for_backward = kept.size();
  if (record->has_saved_for_jvp) {
    const std::vector<int64_t> more = record->places(record->kept_for_jvp, everything);
    kept.insert(kept.end(), more.begin(), more.end());
  }
  const std::vector<int64_t> changed = record->places(record->dirty(), everything);
  std::vector<int64_t> constant = record->places(record->non_differentiable(), everything);
  for (size_t i = known; i < everything.size(); ++i) {
    constant.push_back(static_cast<int64_t>(i));
  }
  record->kept.clear();
  record->kept_for_jvp.clear();
  record->forget_marks();
  const bool materialize = record->materialize;
  const OwnedRef outputs = tuple_of(c10::ArrayRef<at::Tensor>(everything).slice(inputs));
  const OwnedRef parts[] = {tuple_of(kept), tuple_of(changed), tuple_of(constant)};
  const OwnedRef owner(checked(PyCapsule_New(record.get(), RECORD, [](PyObject* object) {
    delete static_cast<Record*>(PyCapsule_GetPointer(object, RECORD));
  })));
  record.release();
  return checked(PyTuple_Pack(
      6, owner.get(), outputs.get(), parts[0].get(), parts[1].get(), parts[2].get(), materialize ? Py_True : Py_False));
}

// Calls backward with the gradients of all outputs: those of forward, and the extra ones it saved.
PyObject* transformed_backward(PyObject* capsule, PyObject* saved, PyObject* needs, PyObject* grads) {
  Record& record = in_capsule<Record>(capsule, RECORD);
  std::vector<at::Tensor> kept = tensors_in(saved);
  kept.resize(record.for_backward);
  std::vector<bool> needed;
  for (Py_ssize_t i = 0; i < checked(PyTuple_Size(needs)); ++i) {
    needed.push_back(PyTuple_GET_ITEM(needs, i) == Py_True);
  }
  std::vector<at::Tensor> all = tensors_in(grads);
  Tensors given(all.begin(), all.end()), results;
  torch::autograd::variable_list gradients;
  ContextOfSaved context(record.definition->name + "Backward", record.ranges, std::move(kept), needed);
  context.share_state(record);
  {
    const NoGil released;
    record.definition->backward.call(record.definition->backward.function, context, given, results);
    gradients = by_tensor(*record.definition, record.ranges, results);
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!needed[i]) {
      gradients[i] = at::Tensor();  // torch accepts none for a missing tensor
    }
  }
  return tuple_of(gradients).release();
}

// Calls jvp with the tangents of the inputs.
PyObject* transformed_jvp(PyObject* capsule, PyObject* saved, PyObject* tangents) {
  Record& record = in_capsule<Record>(capsule, RECORD);
  refuse_without_jvp(*record.definition);
  std::vector<at::Tensor> kept = tensors_in(saved);
  if (record.has_saved_for_jvp) {
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(record.for_backward));
  }
  const std::vector<at::Tensor> given = tensors_in(tangents);
  Tensors results;
  {
    const NoGil released;
    const at::AutoFwGradMode mode(true);
    std::transform(kept.begin(), kept.end(), kept.begin(), without_tangent);
    ContextOfSaved context(
        record.definition->name + "Backward", record.ranges, std::move(kept), std::vector<bool>(given.size(), true));
    context.share_state(record);
    results = call_jvp(*record.definition, context, record.ranges, given);
  }
  return tuple_of(results).release();
}

void apply_transformed(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&, const at::Tensor*)> forward,
    Tensors& outputs) {
  in_python([&] {
    Call call{definition, inputs, forward, outputs};
    const OwnedRef capsule(checked(PyCapsule_New(&call, CALL, nullptr)));
    const OwnedRef tensors = tuple_of(tensors_of(inputs));
    const OwnedRef module(checked(PyImport_ImportModule("interop._transforms")));
    const OwnedRef results(checked(
        PyObject_CallMethod(module.get(), "apply", "sOO", definition->name.c_str(), capsule.get(), tensors.get())));
    std::vector<at::Tensor> found = tensors_in(results.get());
    outputs.assign(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(call.count));
  });
}

}  // namespace interop::autograd
