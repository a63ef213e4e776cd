// Errors of this module's own C++, each of a kind that Python has a class for.
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace interop::stable {

enum class Kind { runtime, type, value, index, not_implemented };

class Error : public std::exception {
 public:
  Error(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}
  Kind kind() const noexcept {
    return kind_;
  }
  const char* what() const noexcept override {
    return text_.c_str();
  }

 private:
  Kind kind_;
  std::string text_;
};

// Cold, so that a check costs a test and a branch.
template <class... A>
[[noreturn]] __attribute__((noinline, cold)) void raise(Kind kind, const A&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(kind, text.str());
}

}  // namespace interop::stable
