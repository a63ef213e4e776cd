// The types of ctx.state[T], and the copy of a state that compiled autograd needs.
#pragma once

#include <c10/core/SymInt.h>
#include <c10/util/ArrayRef.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace interop::autograd {

// A copy of a state for compiled autograd: numbers as bytes, and sizes, which a trace replaces by symbols.
struct StateParts {
  std::string bytes;
  std::vector<c10::SymInt> sizes;
};

namespace state {

// Converts to the type of any member.
struct AnyMember {
  template <class M>
  operator M() const;
};

// Calls f with the members of an aggregate, or without arguments if it has none, more than eight, or one that {} does
// not initialise.
template <class T, class F>
auto with_members(T& t, F f) {
  if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, g, h, i] = t;
    return f(a, b, c, d, e, g, h, i);
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, g, h] = t;
    return f(a, b, c, d, e, g, h);
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, g] = t;
    return f(a, b, c, d, e, g);
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e] = t;
    return f(a, b, c, d, e);
  } else if constexpr (requires { T{{}, {}, {}, {}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}, {}, {}}; }) {
    auto& [a, b, c, d] = t;
    return f(a, b, c, d);
  } else if constexpr (requires { T{{}, {}, {}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}, {}}; }) {
    auto& [a, b, c] = t;
    return f(a, b, c);
  } else if constexpr (requires { T{{}, {}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}}; }) {
    auto& [a, b] = t;
    return f(a, b);
  } else if constexpr (requires { T{{}, AnyMember()}; }) {
    return f();
  } else if constexpr (requires { T{{}}; }) {
    auto& [a] = t;
    return f(a);
  } else {
    return f();
  }
}

// Converts to each base class of T, and to nothing else.
template <class T>
struct AnyBase {
  template <class B>
    requires(std::is_base_of_v<B, T> && !std::is_same_v<B, T>)
  operator B() const;
};

// A structured binding does not name the members of a base class.
template <class T>
inline constexpr bool has_base = requires { T{AnyBase<T>{}}; };

template <class T>
inline constexpr bool is_list = false;
template <class U>
inline constexpr bool is_list<std::vector<U>> = true;
template <>
inline constexpr bool is_list<std::string> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class U>
inline constexpr bool is_optional<std::optional<U>> = true;

template <class T>
inline constexpr bool is_view = std::is_pointer_v<T> || std::is_same_v<T, std::string_view>;
template <class U>
inline constexpr bool is_view<c10::ArrayRef<U>> = true;

// Set this to false for a struct whose members cannot be named one by one, which C++ cannot find out: one with
// bit-fields or anonymous unions beside vectors, or one that contains a vector of itself.
template <class T>
inline constexpr bool is_copied = true;

// Whether compiled autograd can copy a T. Plain structs are copied as bytes.
template <class T>
constexpr bool has_parts() {
  if constexpr (is_view<T> || !is_copied<T>) {
    return false;
  } else if constexpr (std::is_same_v<T, c10::SymInt> || std::is_trivially_copyable_v<T>) {
    return true;
  } else if constexpr (is_list<T> || is_optional<T>) {
    return std::is_default_constructible_v<typename T::value_type> && has_parts<typename T::value_type>();
  } else if constexpr (
      std::is_aggregate_v<T> && std::is_class_v<T> && std::is_copy_assignable_v<T> && !has_base<T> &&
      !requires { std::tuple_size<T>::value; }) {
    return decltype(with_members(std::declval<T&>(), []<class... M>(M&...) {
      return std::bool_constant<sizeof...(M) != 0 && (has_parts<M>() && ...)>();
    }))::value;
  } else {
    return false;
  }
}

// Appends what it is called with to `parts`, or sets it from there, in the same order.
struct Copy {
  StateParts& parts;
  bool reads;
  size_t next_byte = 0, next_size = 0;

  template <class T>
  void operator()(T& value) {
    if constexpr (std::is_same_v<T, c10::SymInt>) {
      if (reads) {
        value = parts.sizes[next_size++];
      } else {
        parts.sizes.push_back(value);
      }
    } else if constexpr (std::is_trivially_copyable_v<T>) {
      if (reads) {
        std::memcpy(&value, parts.bytes.data() + next_byte, sizeof(T));
        next_byte += sizeof(T);
      } else {
        parts.bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
      }
    } else if constexpr (is_list<T>) {
      size_t count = value.size();
      (*this)(count);
      value.resize(count);
      for (size_t i = 0; i < count; ++i) {
        typename T::value_type element = value[i];  // a vector<bool> has no references to its elements
        (*this)(element);
        value[i] = std::move(element);
      }
    } else if constexpr (is_optional<T>) {
      bool has_value = value.has_value();
      (*this)(has_value);
      if (has_value) {
        (*this)(value ? *value : value.emplace());
      } else if (reads) {
        value.reset();  // a member's initialiser may have set it
      }
    } else {
      with_members(value, [this](auto&... member) { ((*this)(member), ...); });
    }
  }
};

}  // namespace state

// The type T of ctx.state[T].
struct StateType {
  const std::type_info* type;
  void* (*make)();
  void (*destroy)(void*);
  void (*copy)(void*, StateParts&, bool reads);  // null if compiled autograd cannot copy a T
};

template <class T>
inline constexpr StateType state_type = {
    &typeid(T), []() -> void* { return new T(); }, [](void* object) { delete static_cast<T*>(object); },
    [] {
      void (*copy)(void*, StateParts&, bool) = nullptr;
      if constexpr (state::has_parts<T>()) {
        copy = [](void* object, StateParts& parts, bool reads) { state::Copy{parts, reads}(*static_cast<T*>(object)); };
      }
      return copy;
    }()};

}  // namespace interop::autograd
