// The only table of the element types that torch shares with NumPy, the buffer protocol, DLPack and ml_dtypes.
#pragma once

#include <ATen/dlpack.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>

namespace interop::bridges {

struct Dtype {
  c10::ScalarType type;
  char kind;            // NumPy's: b, i, u, f, c; V for a type that has only a size and a name
  uint8_t size;         // bytes
  uint8_t alignment;    // bytes; for a complex number, that of its parts
  const char* format;   // the buffer protocol's, or null
  const char* ml_name;  // the type's name in ml_dtypes, or null
  uint8_t dl_code;      // DLPack's
};

// Readers treat long and long long alike, and NumPy writes the first that fits.
inline constexpr const char* signed_64 = sizeof(long) == 8 ? "l" : "q";
inline constexpr const char* unsigned_64 = sizeof(long) == 8 ? "L" : "Q";

inline constexpr std::array dtypes = {
    Dtype{c10::ScalarType::Bool, 'b', 1, 1, "?", nullptr, kDLBool},
    Dtype{c10::ScalarType::Byte, 'u', 1, 1, "B", nullptr, kDLUInt},
    Dtype{c10::ScalarType::Char, 'i', 1, 1, "b", nullptr, kDLInt},
    Dtype{c10::ScalarType::Short, 'i', 2, 2, "h", nullptr, kDLInt},
    Dtype{c10::ScalarType::Int, 'i', 4, 4, "i", nullptr, kDLInt},
    Dtype{c10::ScalarType::Long, 'i', 8, alignof(int64_t), signed_64, nullptr, kDLInt},
    Dtype{c10::ScalarType::UInt16, 'u', 2, 2, "H", nullptr, kDLUInt},
    Dtype{c10::ScalarType::UInt32, 'u', 4, 4, "I", nullptr, kDLUInt},
    Dtype{c10::ScalarType::UInt64, 'u', 8, alignof(uint64_t), unsigned_64, nullptr, kDLUInt},
    Dtype{c10::ScalarType::Half, 'f', 2, 2, "e", nullptr, kDLFloat},
    Dtype{c10::ScalarType::Float, 'f', 4, 4, "f", nullptr, kDLFloat},
    Dtype{c10::ScalarType::Double, 'f', 8, alignof(double), "d", nullptr, kDLFloat},
    Dtype{c10::ScalarType::ComplexFloat, 'c', 8, 4, "Zf", nullptr, kDLComplex},
    Dtype{c10::ScalarType::ComplexDouble, 'c', 16, alignof(double), "Zd", nullptr, kDLComplex},
    // NumPy and the buffer protocol have no complex type of this size.
    Dtype{c10::ScalarType::ComplexHalf, 'V', 4, 2, nullptr, nullptr, kDLComplex},
    Dtype{c10::ScalarType::BFloat16, 'V', 2, 2, nullptr, "bfloat16", kDLBfloat},
    Dtype{c10::ScalarType::Float8_e5m2, 'V', 1, 1, nullptr, "float8_e5m2", kDLFloat8_e5m2},
    Dtype{c10::ScalarType::Float8_e4m3fn, 'V', 1, 1, nullptr, "float8_e4m3fn", kDLFloat8_e4m3fn},
    Dtype{c10::ScalarType::Float8_e5m2fnuz, 'V', 1, 1, nullptr, "float8_e5m2fnuz", kDLFloat8_e5m2fnuz},
    Dtype{c10::ScalarType::Float8_e4m3fnuz, 'V', 1, 1, nullptr, "float8_e4m3fnuz", kDLFloat8_e4m3fnuz},
    Dtype{c10::ScalarType::Float8_e8m0fnu, 'V', 1, 1, nullptr, "float8_e8m0fnu", kDLFloat8_e8m0fnu},
    // Two numbers in a byte, which torch treats as one element.
    Dtype{c10::ScalarType::Float4_e2m1fn_x2, 'V', 1, 1, nullptr, nullptr, kDLFloat4_e2m1fn},
};

namespace detail {

inline constexpr size_t types = static_cast<size_t>(c10::ScalarType::NumOptions);
inline constexpr uint8_t none = 0xFF;

// Rows of the table, indexed by ScalarType.
inline constexpr auto rows_by_type = [] {
  std::array<uint8_t, types> rows{};
  rows.fill(none);
  for (size_t i = 0; i < dtypes.size(); ++i) {
    rows[static_cast<size_t>(dtypes[i].type)] = static_cast<uint8_t>(i);
  }
  return rows;
}();

// The index for a kind and a size. Sizes are powers of two up to 16.
constexpr size_t slot(char kind, unsigned log_size) noexcept {
  return (static_cast<size_t>(kind) & 0x1F) * 5 + log_size;
}

constexpr unsigned log2(size_t size) noexcept {
  return static_cast<unsigned>(__builtin_ctzll(size));
}

inline constexpr auto rows_by_kind = [] {
  std::array<uint8_t, slot('\x1F', 5)> rows{};
  rows.fill(none);
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i].kind != 'V') {
      rows[slot(dtypes[i].kind, log2(dtypes[i].size))] = static_cast<uint8_t>(i);
    }
  }
  return rows;
}();

}  // namespace detail

// The row of a type, or null.
constexpr const Dtype* find_dtype(c10::ScalarType type) noexcept {
  const auto number = static_cast<size_t>(type);
  const uint8_t row = number < detail::types ? detail::rows_by_type[number] : detail::none;
  return row == detail::none ? nullptr : &dtypes[row];
}

// The row of a kind and a size in bytes, or null. Type numbers cannot be the key: long and long long are one type
// with two numbers.
constexpr const Dtype* find_dtype(char kind, size_t size) noexcept {
  if (size == 0 || size > 16 || (size & (size - 1)) != 0) {
    return nullptr;
  }
  const uint8_t row = detail::rows_by_kind[detail::slot(kind, detail::log2(size))];
  return row == detail::none || dtypes[row].kind != kind ? nullptr : &dtypes[row];
}

constexpr DLDataType to_dl(const Dtype& dtype) noexcept {
  if (dtype.type == c10::ScalarType::Float4_e2m1fn_x2) {
    return {kDLFloat4_e2m1fn, 4, 2};
  }
  return {dtype.dl_code, static_cast<uint8_t>(dtype.size * 8), 1};
}

// The row of a DLPack type, or null. Only Float4_e2m1fn_x2 has more than one lane.
constexpr const Dtype* find_dtype(const DLDataType& wanted) noexcept {
  for (const Dtype& dtype : dtypes) {
    const DLDataType has = to_dl(dtype);
    if (has.code == wanted.code && has.bits == wanted.bits && has.lanes == wanted.lanes) {
      return &dtype;
    }
  }
  return nullptr;
}

static_assert(find_dtype(DLDataType{kDLFloat, 32, 1})->type == c10::ScalarType::Float);
static_assert(find_dtype(DLDataType{kDLFloat, 32, 2}) == nullptr && find_dtype(DLDataType{kDLInt, 4, 2}) == nullptr);
static_assert(find_dtype('f', 4)->type == c10::ScalarType::Float);
static_assert(find_dtype('c', 16)->type == c10::ScalarType::ComplexDouble);
static_assert(find_dtype('f', 16) == nullptr && find_dtype('V', 2) == nullptr && find_dtype('O', 8) == nullptr);

}  // namespace interop::bridges
