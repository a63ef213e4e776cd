// Errors of this module's own C++. Each kind has a Python class.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace interop::stable {

enum class Kind { runtime, type, value, index, not_implemented, linalg };

// std::runtime_error stores the text, because its code is already in the standard library; a std::string would be
// compiled again.
class Error : public std::runtime_error {
 public:
  Error(Kind kind, const char* text) : std::runtime_error(text), kind_(kind) {}
  Kind kind() const noexcept {
    return kind_;
  }

 private:
  Kind kind_;
};

// A part of a message: borrowed text, or an integer.
class Part {
 public:
  Part(const char* text) : text_(text) {}
  Part(std::string_view text) : text_(text) {}
  Part(const std::string& text) : text_(text) {}
  template <class T>
    requires std::is_integral_v<T>
  Part(T value) : text_(number_) {
    if constexpr (std::is_signed_v<T>) {
      std::snprintf(number_, sizeof(number_), "%lld", static_cast<long long>(value));
    } else {
      std::snprintf(number_, sizeof(number_), "%llu", static_cast<unsigned long long>(value));
    }
    text_ = number_;
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  std::string_view text() const noexcept {
    return text_;
  }

 private:
  char number_[24] = "";
  std::string_view text_;
};

// Joins the parts into one text.
class Joined {
 public:
  Joined(const Part* parts, size_t count);
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;
  ~Joined() {
    delete[] text_;
  }
  const char* text() const noexcept {
    return text_;
  }

 private:
  char* text_;
};

[[noreturn]] __attribute__((cold)) void raise_joined(Kind kind, const Part* parts, size_t count);

// Cold, so that a check costs a test and a branch.
template <class... A>
[[noreturn]] __attribute__((noinline, cold)) void raise(Kind kind, const A&... parts) {
  const Part listed[] = {Part(parts)...};
  raise_joined(kind, listed, sizeof...(A));
}

}  // namespace interop::stable
