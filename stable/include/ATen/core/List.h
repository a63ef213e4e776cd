// A list of values that torch stores as IValues. Here a vector holds them until they are passed.
#pragma once

#include <vector>

namespace c10 {

template <class T>
class List : public std::vector<T> {
 public:
  using std::vector<T>::vector;
};

}  // namespace c10
