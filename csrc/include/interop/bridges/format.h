// Parses format strings of the buffer protocol (PEP 3118, which extends the struct module) into element types.
#pragma once

#include <c10/util/SmallVector.h>

#include <bit>
#include <cstdint>
#include <string_view>

#include "interop/bridges/dtypes.h"

namespace interop::bridges {

// The meaning of a format. Either `dtype` or `reason` is set.
struct Format {
  const Dtype* dtype = nullptr;
  c10::SmallVector<int64_t, 4> sizes;  // sizes of the subarray in each item: (2,3)f has 2 and 3, 4f has 4
  int64_t itemsize = 0;                // in bytes, of the whole subarray
  const char* reason = nullptr;        // why there is no dtype
  bool pointers = false;               // its bytes are addresses, which no view may show as another type
};

namespace detail {

class FormatReader {
 public:
  explicit FormatReader(const char* text) noexcept : text_(text ? text : "B") {}

  Format read() {
    fields(0);
    if (!format_.reason && count_ != 1) {
      fail(count_ == 0 ? "it has no elements" : "it has several fields");
    }
    if (format_.reason) {
      format_.dtype = nullptr;
    }
    return std::move(format_);
  }

 private:
  static constexpr int deepest = 16;

  void fail(const char* reason) noexcept {
    if (!format_.reason) {
      format_.reason = reason;
    }
  }

  char peek() const noexcept {
    return text_.empty() ? '\0' : text_.front();
  }

  char next() noexcept {
    const char c = peek();
    text_.remove_prefix(text_.empty() ? 0 : 1);
    return c;
  }

  void spaces() noexcept {
    while (peek() == ' ' || (peek() >= '\t' && peek() <= '\r')) {
      next();
    }
  }

  bool digits() const noexcept {
    return peek() >= '0' && peek() <= '9';
  }

  int64_t number() noexcept {
    int64_t value = 0;
    while (digits()) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{next() - '0'}, &value)) {
        fail("it has a number that is too large");
        return 0;
      }
    }
    return value;
  }

  // Reads up to the end, or to the brace that closes a struct.
  void fields(int depth) {
    if (depth > deepest) {
      give_up("it is nested too deeply");
    }
    for (spaces(); !text_.empty() && peek() != '}'; spaces()) {
      field(depth);
    }
    if (depth == 0 && peek() == '}') {
      give_up("it cannot be parsed: it has one brace too many");
    }
  }

  void field(int depth) {
    order();
    c10::SmallVector<int64_t, 4> sizes;
    if (peek() == '(') {
      char after;
      do {
        next();
        spaces();
        if (!digits()) {
          return broken();
        }
        sizes.push_back(number());
        spaces();
        after = peek();
      } while (after == ',');
      if (next() != ')') {
        return broken();
      }
      spaces();
    }
    order();
    const bool counted = digits();
    const int64_t count = counted ? number() : 1;
    spaces();
    order();
    const char code = next();
    if (code == 'x') {
      fail("it has padding");
      return;
    }
    element(code, depth);
    ++count_;
    if (counted && count != 1) {
      sizes.push_back(count);
    }
    for (const int64_t size : sizes) {
      if (__builtin_mul_overflow(format_.itemsize, size, &format_.itemsize)) {
        fail("it has a number that is too large");
      }
    }
    format_.sizes = sizes;
    spaces();
    if (peek() == ':') {
      next();
      while (!text_.empty() && peek() != ':') {
        next();
      }
      if (next() != ':') {
        broken();
      }
    }
  }

  void order() noexcept {
    while (peek() != '\0' && std::string_view("@=<>!^").find(peek()) != std::string_view::npos) {
      const char c = next();
      native_sizes_ = c == '@' || c == '^';
      const bool big = c == '>' || c == '!';
      const bool little = c == '<';
      swapped_ = std::endian::native == std::endian::little ? big : little;
      spaces();
    }
  }

  // Stops reading. A pointer code anywhere in the format then counts.
  void give_up(const char* reason) noexcept {
    fail(reason);
    format_.pointers |= has_pointer_code();
    text_ = {};
  }

  bool has_pointer_code() const noexcept {
    bool in_name = false;
    for (size_t i = 0; i < whole_.size(); ++i) {
      const char c = whole_[i];
      const char after = i + 1 < whole_.size() ? whole_[i + 1] : '\0';
      if (c == ':') {
        in_name = !in_name;
      } else if (
          !in_name && (std::string_view("OPXz&").find(c) != std::string_view::npos ||
                       (c == 'Z' && after != 'f' && after != 'd' && after != 'g'))) {
        return true;
      }
    }
    return false;
  }

  void broken() noexcept {
    give_up("it cannot be parsed");
  }

  // A code whose type is the same on every platform. F and D are codes of struct since Python 3.14.
  struct Number {
    char code, kind;
    size_t size;
  };
  static constexpr Number numbers[] = {{'?', 'b', 1}, {'c', 'u', 1}, {'B', 'u', 1}, {'b', 'i', 1}, {'h', 'i', 2},
                                       {'H', 'u', 2}, {'i', 'i', 4}, {'I', 'u', 4}, {'q', 'i', 8}, {'Q', 'u', 8},
                                       {'e', 'f', 2}, {'f', 'f', 4}, {'d', 'f', 8}, {'F', 'c', 8}, {'D', 'c', 16}};

  void element(char code, int depth) {
    for (const Number& number : numbers) {
      if (number.code == code) {
        return scalar(number.kind, number.size);
      }
    }
    switch (code) {
      case 'l':
        return scalar('i', native_sizes_ ? sizeof(long) : 4);
      case 'L':
        return scalar('u', native_sizes_ ? sizeof(long) : 4);
      case 'n':
        return native_sizes_ ? scalar('i', sizeof(void*)) : broken();
      case 'N':
        return native_sizes_ ? scalar('u', sizeof(void*)) : broken();
      case 'g':
        return other("torch has no long double", sizeof(long double));
      case 'Z': {
        const char part = peek();
        if (part != 'f' && part != 'd' && part != 'g') {
          return pointer("its elements are pointers");  // ctypes' code of a c_wchar_p
        }
        next();
        return part == 'g' ? other("torch has no complex long double", 2 * sizeof(long double))
                           : scalar('c', part == 'f' ? 8 : 16);
      }
      case 's':
      case 'p':
        return other("torch has no strings", 1);
      case 'u':
        return other("torch has no characters", 2);
      case 'w':
        return other("torch has no characters", 4);
      case 't':
        return other("torch has no bits", 1);
      case 'O':
      case 'P':
      case 'z':  // ctypes' code of a c_char_p
        return pointer("its elements are pointers");
      case '&': {
        char target;
        do {  // a loop, because recursion could go as deep as the text is long
          order();
          target = next();
        } while (target == '&');
        element(target, depth);
        return pointer("its elements are pointers");
      }
      case 'X':
        if (next() != '{') {
          return broken();
        }
        for (int open = 1; open > 0;) {
          const char c = next();
          if (c == '\0') {
            return broken();
          }
          open += c == '{' ? 1 : c == '}' ? -1 : 0;
        }
        return pointer("its elements are pointers to functions");
      case 'T':
        if (next() != '{') {
          return broken();
        }
        fields(depth + 1);
        if (next() != '}') {
          return broken();
        }
        return fail("it is a struct");
      default:
        return broken();
    }
  }

  void scalar(char kind, size_t size) noexcept {
    format_.dtype = find_dtype(kind, size);
    format_.itemsize = static_cast<int64_t>(size);
    if (swapped_ && size > 1) {
      fail("its byte order is not that of this machine");
    }
  }

  void other(const char* reason, size_t size) noexcept {
    format_.itemsize = static_cast<int64_t>(size);
    fail(reason);
  }

  void pointer(const char* reason) noexcept {
    format_.pointers = true;
    other(reason, sizeof(void*));
  }

  std::string_view text_;
  const std::string_view whole_ = text_;
  Format format_;
  int count_ = 0;
  bool native_sizes_ = true;
  bool swapped_ = false;
};

}  // namespace detail

// Parses a format; null means bytes. The text is untrusted input.
inline Format read_format(const char* text) {
  // Fast path for almost all exporters.
  if (text && text[0] != '\0' && text[1] == '\0') {
    for (const Dtype& dtype : dtypes) {
      if (dtype.format && dtype.format[0] == text[0] && dtype.format[1] == '\0') {
        Format format;
        format.dtype = &dtype;
        format.itemsize = dtype.size;
        return format;
      }
    }
  }
  return detail::FormatReader(text).read();
}

}  // namespace interop::bridges
