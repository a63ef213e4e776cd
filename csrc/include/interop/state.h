// The types of ctx.state[T], and the copy of a state that compiled autograd needs.
#pragma once

#include <c10/core/SymInt.h>

#include <cstring>
#include <optional>
#include <string>
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

// Calls f with the members of an aggregate, or without arguments if there are more than eight.
template <class T, class F>
auto with_members(T& t, F f) {
  if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    return f();
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, g, h, i] = t;
    return f(a, b, c, d, e, g, h, i);
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, g, h] = t;
    return f(a, b, c, d, e, g, h);
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, g] = t;
    return f(a, b, c, d, e, g);
  } else if constexpr (requires { T{{}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e] = t;
    return f(a, b, c, d, e);
  } else if constexpr (requires { T{{}, {}, {}, {}}; }) {
    auto& [a, b, c, d] = t;
    return f(a, b, c, d);
  } else if constexpr (requires { T{{}, {}, {}}; }) {
    auto& [a, b, c] = t;
    return f(a, b, c);
  } else if constexpr (requires { T{{}, {}}; }) {
    auto& [a, b] = t;
    return f(a, b);
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

// Whether compiled autograd can copy a T.
template <class T>
constexpr bool has_parts() {
  if constexpr (std::is_same_v<T, c10::SymInt> || std::is_trivially_copyable_v<T>) {
    return true;
  } else if constexpr (is_list<T> || is_optional<T>) {
    return has_parts<typename T::value_type>();
  } else if constexpr (std::is_aggregate_v<T> && !has_base<T>) {
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
