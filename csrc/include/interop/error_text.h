// The part of torch's error messages that reaches the user.
#pragma once

#include <string_view>

namespace interop {

// If an operator has no kernel for its arguments, torch lists every backend that has one, some fifty lines. Only the
// first line says what is wrong. All other messages are whole, because the lines of a user's own message matter.
inline std::string_view without_list_of_kernels(std::string_view text) noexcept {
  constexpr std::string_view followed_by_it[] = {"Could not run '", "There were no tensor arguments to this function "};
  for (const std::string_view beginning : followed_by_it) {
    if (text.starts_with(beginning)) {
      return text.substr(0, text.find('\n'));
    }
  }
  return text;
}

}  // namespace interop
