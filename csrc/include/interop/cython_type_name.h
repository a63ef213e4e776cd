// Spells the names of C++ types as in Cython, for messages.
#pragma once

#include <c10/util/Type.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <typeinfo>

namespace interop {

namespace detail {

inline void replace_all(std::string& text, const std::string& old, const std::string& by) {
  for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + by.size())) {
    text.replace(at, old.size(), by);
  }
}

// Turns __pyx_t_7package_6module_Struct into Struct. Each part in front of the name begins with its length.
inline void unmangle(std::string& text) {
  const std::string prefix = "__pyx_t_";
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    size_t name = at + prefix.size();
    while (name < text.size() && std::isdigit(static_cast<unsigned char>(text[name]))) {
      size_t digits = 0;
      const size_t length = std::stoul(text.substr(name), &digits);
      name += digits + length + 1;
    }
    text.erase(at, std::min(name, text.size()) - at);
  }
}

}  // namespace detail

// "vector[at.Tensor]" for std::vector<at::Tensor>.
inline std::string spelled(const std::type_info& type) {
  std::string text = c10::demangle(type.name());
  detail::replace_all(
      text, "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "string");
  detail::replace_all(text, "c10::", "at.");
  detail::replace_all(text, "at::", "at.");
  detail::replace_all(text, "std::", "");
  for (size_t at = text.find(", allocator<"); at != std::string::npos; at = text.find(", allocator<")) {
    size_t end = at + std::string(", allocator<").size();
    for (int depth = 1; depth > 0 && end < text.size(); ++end) {
      depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
    }
    text.erase(at, end - at);
  }
  detail::replace_all(text, " >", ">");
  detail::replace_all(text, "<", "[");
  detail::replace_all(text, ">", "]");
  detail::unmangle(text);
  return text == "long" ? "int64_t" : text;
}

}  // namespace interop
