// Reads the parameter types of a kernel from its C++ name, and checks whether the arguments of a launch fit. The CUDA
// driver copies bytes unchecked: an int for a float, or a float64 tensor for a float*, would give wrong numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "interop/check_memory.h"
#include "interop/convert.h"

namespace interop::cuda {

// The element type with a C++ name. `char` is signed on the platforms of CUDA.
inline std::optional<c10::ScalarType> scalar_type_named(std::string_view name) {
  static constexpr std::pair<std::string_view, c10::ScalarType> known[] = {
      {"float", at::kFloat},      {"double", at::kDouble},
      {"__half", at::kHalf},      {"__nv_bfloat16", at::kBFloat16},
      {"bool", at::kBool},        {"char", at::kChar},
      {"signed char", at::kChar}, {"unsigned char", at::kByte},
      {"short", at::kShort},      {"unsigned short", at::kUInt16},
      {"int", at::kInt},          {"unsigned int", at::kUInt32},
      {"long", at::kLong},        {"unsigned long", at::kUInt64},
      {"long long", at::kLong},   {"unsigned long long", at::kUInt64}};
  for (const auto& [written, type] : known) {
    if (written == name) {
      return type;
    }
  }
  return std::nullopt;
}

// Whether the bytes of both types have the same meaning; signed and unsigned integers of one size count as the same.
inline bool interchangeable(c10::ScalarType a, c10::ScalarType b) {
  return a == b ||
         (c10::isIntegralType(a, true) && c10::isIntegralType(b, true) && c10::elementSize(a) == c10::elementSize(b));
}

// An argument of one launch: the bytes that the kernel gets, and their type.
struct LaunchArgument {
  const void* bytes = nullptr;
  size_t size = 0;
  const at::TensorBase* tensor = nullptr;  // if it is one, the kernel gets its data pointer
  bool pointer = false;
  std::optional<c10::ScalarType> number;  // its type, if it is a number

  template <class A>
  static LaunchArgument of(const A& argument) noexcept {
    static_assert(!Object<A>, "a kernel takes no Python objects: pass x.cdata of a torch.Tensor, or a C number");
    LaunchArgument made;
    made.bytes = &argument;
    made.size = sizeof(A);
    if constexpr (std::is_base_of_v<at::TensorBase, A>) {
      made.bytes = nullptr;
      made.size = sizeof(void*);
      made.tensor = &argument;
    } else {
      static_assert(
          std::is_trivially_copyable_v<A> && !std::is_array_v<A>,
          "a kernel takes tensors, C numbers, pointers and plain structs");
      made.pointer = std::is_pointer_v<A> || std::is_null_pointer_v<A>;
      if constexpr (std::is_enum_v<A>) {
        made.number = scalar_type_of<std::underlying_type_t<A>>();
      } else if constexpr (std::is_arithmetic_v<A> && !std::is_same_v<A, long double>) {
        made.number = scalar_type_of<A>();
      } else if constexpr (std::is_same_v<A, c10::Half> || std::is_same_v<A, c10::BFloat16>) {
        made.number = c10::CppTypeToScalarType<A>::value;
      }
    }
    return made;
  }

  // "a tensor of torch.float32", "a whole number of 4 bytes"
  std::string describe() const {
    if (tensor) {
      return "a tensor of " + interop::detail::dtype_name(tensor->scalar_type());
    }
    const std::string bytes_text = std::to_string(size) + (size == 1 ? " byte" : " bytes");
    if (pointer) {
      return "a pointer";
    }
    if (number) {
      return std::string(
                 *number == at::kBool                 ? "a bool"
                 : c10::isIntegralType(*number, true) ? "a whole number"
                                                      : "a floating-point number") +
             " of " + bytes_text;
    }
    return "a struct of " + bytes_text;
  }
};

// A parameter of a kernel, as written in the kernel's name: "float const*", "long".
class ParameterType {
 public:
  explicit ParameterType(std::string type) : type_(std::move(type)) {
    std::string_view rest = type_;
    pointer_ = take(rest, "*") || rest.find("(*)") != rest.npos;  // to a function or an array
    while (take(rest, " const") || take(rest, " volatile")) {
      constant_ = constant_ || std::string_view(type_).substr(rest.size()).starts_with(" const");
    }
    element_ = scalar_type_named(rest);
  }

  const std::string& type() const noexcept {
    return type_;
  }
  // Whether the kernel may write through the pointer.
  bool writes() const noexcept {
    return pointer_ && !constant_;
  }

  // False only if the argument is certainly wrong: for structs and the like, the driver knows the size.
  bool takes(const LaunchArgument& argument) const {
    if (pointer_) {
      return argument.tensor ? !element_ || interchangeable(*element_, argument.tensor->scalar_type())
                             : argument.pointer;
    }
    if (!element_) {
      return !argument.tensor;
    }
    return argument.number && interchangeable(*element_, *argument.number);
  }

 private:
  static bool take(std::string_view& text, std::string_view end) {
    if (!text.ends_with(end)) {
      return false;
    }
    text.remove_suffix(end.size());
    return true;
  }

  std::string type_;
  bool pointer_ = false;
  bool constant_ = false;
  std::optional<c10::ScalarType> element_;  // of the number or the pointer's target; empty if it is not in our list
};

}  // namespace interop::cuda
