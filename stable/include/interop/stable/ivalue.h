// Values on the stack of torch's dispatcher. Each is a 64-bit word. For a tensor, a list, a string and an optional,
// the word is a handle, owned by the side that takes the word.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ATen/core/List.h"
#include "c10/util/ArrayRef.h"
#include "c10/util/OptionalArrayRef.h"
#include "interop/python_error.h"
#include "interop/stable/tensor.h"

namespace interop::stable {

// Converts a value of type T to a word and back. Specialised for each kind of type.
template <class T>
struct Word;

// Numbers.
template <class T>
  requires std::is_arithmetic_v<T>
struct Word<T> {
  static StableIValue give(T value) noexcept {
    StableIValue word = 0;
    std::memcpy(&word, &value, sizeof(value));
    return word;
  }
  static T take(StableIValue word) noexcept {
    T value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
};
// torch's enums. The C interface uses the same numbers.
template <class T>
  requires std::is_enum_v<T>
struct Word<T> {
  static StableIValue give(T value) noexcept {
    return Word<int32_t>::give(static_cast<int32_t>(value));
  }
  static T take(StableIValue word) noexcept {
    return static_cast<T>(Word<int32_t>::take(word));
  }
};

template <>
struct Word<Tensor> {
  static StableIValue give(const Tensor& tensor) {
    AtenTensorHandle handle = tensor.new_handle();
    if (!handle) {  // torch passes an undefined tensor as a tensor, too
      INTEROP_CALL(aoti_torch_new_uninitialized_tensor, &handle);
    }
    return reinterpret_cast<StableIValue>(handle);
  }
  static Tensor take(StableIValue word) noexcept {
    return Tensor(reinterpret_cast<AtenTensorHandle>(word));
  }
};

template <>
struct Word<c10::Device> {
  static StableIValue give(c10::Device device) noexcept {
    const auto half = [](auto value) { return static_cast<uint32_t>(static_cast<int32_t>(value)); };
    return static_cast<StableIValue>(half(device.type())) << 32 | half(device.index());
  }
  static c10::Device take(StableIValue word) {
    return {static_cast<c10::DeviceType>(word >> 32), static_cast<c10::DeviceIndex>(static_cast<int32_t>(word))};
  }
};

template <>
struct Word<std::string_view> {
  static StableIValue give(std::string_view text) {
    StringHandle handle;
    INTEROP_CALL(torch_new_string_handle, text.data(), text.size(), &handle);
    return reinterpret_cast<StableIValue>(handle);
  }
};
template <>
struct Word<std::string> : Word<std::string_view> {
  static std::string take(StableIValue word) {
    const auto handle = reinterpret_cast<StringHandle>(word);
    const char* data = nullptr;
    size_t length = 0;
    shim.torch_string_c_str(handle, &data);
    shim.torch_string_length(handle, &length);
    std::string text(data, length);
    shim.torch_delete_string(handle);
    return text;
  }
};

// A list that has not been passed on yet.
class List {
 public:
  explicit List(size_t size) {
    INTEROP_CALL(torch_new_list_reserve_size, size, &handle_);
  }
  static List taken(StableIValue word) noexcept {
    return List(reinterpret_cast<StableListHandle>(word));
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    if (handle_) {
      shim.torch_delete_list(handle_);
    }
  }
  void push_back(StableIValue word) {
    INTEROP_CALL(torch_list_push_back, handle_, word);
  }
  size_t size() const {
    size_t result = 0;
    INTEROP_CALL(torch_list_size, handle_, &result);
    return result;
  }
  StableIValue operator[](size_t index) const {
    StableIValue word = 0;
    INTEROP_CALL(torch_list_get_item, handle_, index, &word);
    return word;
  }
  StableIValue release() noexcept {
    return reinterpret_cast<StableIValue>(std::exchange(handle_, nullptr));
  }

 private:
  explicit List(StableListHandle handle) noexcept : handle_(handle) {}

  StableListHandle handle_ = nullptr;
};

template <class T, class Values>
StableIValue give_list(const Values& values) {
  List list(values.size());
  for (const auto& value : values) {
    list.push_back(Word<T>::give(value));
  }
  return list.release();
}

template <class T>
struct Word<at::ArrayRef<T>> {
  static StableIValue give(at::ArrayRef<T> values) {
    return give_list<T>(values);
  }
};
template <class T>
struct Word<std::vector<T>> {
  static StableIValue give(const std::vector<T>& values) {
    return give_list<T>(values);
  }
  static std::vector<T> take(StableIValue word) {
    const List list = List::taken(word);
    std::vector<T> values;
    const size_t size = list.size();
    values.reserve(size);
    for (size_t i = 0; i < size; ++i) {
      values.push_back(Word<T>::take(list[i]));
    }
    return values;
  }
};
template <class T>
struct Word<c10::List<T>> : Word<std::vector<T>> {};
template <size_t N>
struct Word<std::array<bool, N>> {
  static StableIValue give(const std::array<bool, N>& values) {
    return give_list<bool>(values);
  }
};

// A word on the heap, or null. Each side frees the other's, with the operator of the one C++ library in the process.
// torch's own headers do the same before 2.13, which has functions for it.
template <class T>
struct Word<std::optional<T>> {
  static StableIValue give(const std::optional<T>& value) {
    if constexpr (std::is_same_v<T, Tensor>) {
      if (value && value->is_null()) {
        return 0;  // as in ATen, which expects a tensor or none
      }
    }
    return value ? reinterpret_cast<StableIValue>(new StableIValue(Word<T>::give(*value))) : 0;
  }
  static std::optional<T> take(StableIValue word) {
    auto* boxed = reinterpret_cast<StableIValue*>(word);
    if (!boxed) {
      return std::nullopt;
    }
    const StableIValue inner = *boxed;
    delete boxed;
    return Word<T>::take(inner);
  }
};
template <class T>
struct Word<at::OptionalArrayRef<T>> {
  static StableIValue give(const at::OptionalArrayRef<T>& value) {
    return Word<std::optional<at::ArrayRef<T>>>::give(value ? std::optional(*value) : std::nullopt);
  }
};

// The results that a call leaves on the stack.
template <class R>
struct Results {
  static constexpr size_t count = 1;
  static R take(const StableIValue* stack) {
    return Word<R>::take(stack[0]);
  }
};
template <>
struct Results<void> {
  static constexpr size_t count = 0;
  static void take(const StableIValue*) noexcept {}
};
template <class... R>
struct Results<std::tuple<R...>> {
  static constexpr size_t count = sizeof...(R);
  // torch_call_dispatcher takes the results off the stack from the last to the first, and their types from the first to
  // the last.
  static_assert(
      []<size_t... i>(std::index_sequence<i...>) {
        return (
            std::is_same_v<
                std::tuple_element_t<i, std::tuple<R...>>, std::tuple_element_t<count - 1 - i, std::tuple<R...>>> &&
            ...);
      }(std::index_sequence_for<R...>()),
      "call an operator whose results have types that read differently backwards with PythonOperator");
  static std::tuple<R...> take(const StableIValue* stack) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return std::tuple<R...>{Word<R>::take(stack[i])...};
    }(std::index_sequence_for<R...>());
  }
};

// A torch operator, called by name. Each call site has its own `static constinit` object.
//
// The dispatcher reads as many words from the stack as its schema has arguments. So before the first call, the schema
// that the caller was compiled for is compared with that of the running torch.
class Operator {
 public:
  constexpr Operator(const char* name, const char* overload, const char* schema) noexcept
      : name_(name), overload_(overload), schema_(schema) {}

  // Pass all arguments of the schema, in order.
  template <class R, class... A>
  R call(const A&... arguments) {
    if (!checked_.load(std::memory_order_acquire)) [[unlikely]] {
      check();
    }
    StableIValue stack[sizeof...(A) + Results<R>::count + 1];
    size_t size = 0;
    ((stack[size++] = Word<A>::give(arguments)), ...);
    if (shim.torch_call_dispatcher(name_, overload_, stack, target_version) != 0) [[unlikely]] {
      fail(name_);
    }
    return Results<R>::take(stack);
  }

  void check();

  const char* name() const noexcept {
    return name_;
  }
  const char* overload() const noexcept {
    return overload_;
  }

 private:
  const char* name_;
  const char* overload_;
  const char* schema_;
  std::atomic<bool> checked_ = false;
};

// The memory format of a call that may name it in two places. The checks are ATen's.
inline std::optional<at::MemoryFormat> memory_format_in(
    const at::TensorOptions& options, std::optional<at::MemoryFormat> memory_format) {
  if (options.requires_grad()) {
    raise(
        Kind::runtime,
        "Operators taking TensorOptions cannot take a TensorOptions with options.requires_grad set as true. This isn't "
        "implemented yet.");
  }
  if (options.memory_format_opt() && memory_format) {
    raise(
        Kind::runtime,
        "Cannot set memory_format both in TensorOptions and explicit argument; please delete the redundant setter.");
  }
  return memory_format ? memory_format : options.memory_format_opt();
}

template <class Self>
Tensor Metadata<Self>::contiguous(at::MemoryFormat memory_format) const {
  if (memory_format == at::kContiguous && is_contiguous()) {  // as in ATen, this needs no dispatcher
    Tensor same;
    same = tensor();  // also makes a borrowed tensor owned
    return same;
  }
  static constinit Operator callee(
      "aten::contiguous", "",
      "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)");
  return callee.call<Tensor>(tensor(), memory_format);
}

template <class Self>
Tensor Metadata<Self>::operator[](int64_t index) const {
  static constinit Operator callee(
      "aten::select", "int", "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)");
  return callee.call<Tensor>(tensor(), int64_t{0}, index);
}

template <class Self>
Tensor Metadata<Self>::operator[](const Tensor& index) const {
  static constinit Operator callee("aten::index", "Tensor", "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor");
  c10::List<std::optional<Tensor>> indices;
  indices.push_back(index);
  return callee.call<Tensor>(tensor(), indices);
}

}  // namespace interop::stable
