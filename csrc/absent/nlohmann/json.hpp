// In place of a header that ATen/functorch/DynamicLayer.h includes and torch does not install. Only functions that we do
// not call use it, so these declarations have no definitions.
#pragma once

#include <string>

namespace nlohmann {

class json {
 public:
  json();
  template <class T>
  explicit json(const T& value);
  static json parse(const std::string& text);
  template <class T>
  T get() const;
  std::string dump() const;
};

}  // namespace nlohmann
