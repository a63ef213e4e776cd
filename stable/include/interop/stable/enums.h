// torch's enums and element types, declared but not defined: the headers that define them (torch/headeronly) include
// half of the C++ standard library. They may also be included, before or after this one; torch's names then replace
// the names here. tests/stable/test_headers.py compares the numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10 {

enum class DeviceType : int8_t;
enum class Layout : int8_t;
enum class MemoryFormat : int8_t;
enum class ScalarType : int8_t;

struct BFloat16;
struct Half;
template <class T>
struct complex;

template <class T>
struct CppTypeToScalarType;

}  // namespace c10

// X(C++ name, Python name, bytes): the element types, in the order of their numbers.
#define INTEROP_ELEMENT_TYPES(X)           \
  X(Byte, uint8, 1)                        \
  X(Char, int8, 1)                         \
  X(Short, int16, 2)                       \
  X(Int, int32, 4)                         \
  X(Long, int64, 8)                        \
  X(Half, float16, 2)                      \
  X(Float, float32, 4)                     \
  X(Double, float64, 8)                    \
  X(ComplexHalf, complex32, 4)             \
  X(ComplexFloat, complex64, 8)            \
  X(ComplexDouble, complex128, 16)         \
  X(Bool, bool, 1)                         \
  X(QInt8, qint8, 1)                       \
  X(QUInt8, quint8, 1)                     \
  X(QInt32, qint32, 4)                     \
  X(BFloat16, bfloat16, 2)                 \
  X(QUInt4x2, quint4x2, 1)                 \
  X(QUInt2x4, quint2x4, 1)                 \
  X(Bits1x8, bits1x8, 1)                   \
  X(Bits2x4, bits2x4, 1)                   \
  X(Bits4x2, bits4x2, 1)                   \
  X(Bits8, bits8, 1)                       \
  X(Bits16, bits16, 2)                     \
  X(Float8_e5m2, float8_e5m2, 1)           \
  X(Float8_e4m3fn, float8_e4m3fn, 1)       \
  X(Float8_e5m2fnuz, float8_e5m2fnuz, 1)   \
  X(Float8_e4m3fnuz, float8_e4m3fnuz, 1)   \
  X(UInt16, uint16, 2)                     \
  X(UInt32, uint32, 4)                     \
  X(UInt64, uint64, 8)                     \
  X(UInt1, uint1, 1)                       \
  X(UInt2, uint2, 1)                       \
  X(UInt3, uint3, 1)                       \
  X(UInt4, uint4, 1)                       \
  X(UInt5, uint5, 1)                       \
  X(UInt6, uint6, 1)                       \
  X(UInt7, uint7, 1)                       \
  X(Int1, int1, 1)                         \
  X(Int2, int2, 1)                         \
  X(Int3, int3, 1)                         \
  X(Int4, int4, 1)                         \
  X(Int5, int5, 1)                         \
  X(Int6, int6, 1)                         \
  X(Int7, int7, 1)                         \
  X(Float8_e8m0fnu, float8_e8m0fnu, 1)     \
  X(Float4_e2m1fn_x2, float4_e2m1fn_x2, 1) \
  X(BComplex32, bcomplex32, 4)

// X(C++ name, Python name, number), for the types with a device of their own.
#define INTEROP_DEVICE_TYPES(X) \
  X(CPU, cpu, 0)                \
  X(CUDA, cuda, 1)              \
  X(HIP, hip, 6)                \
  X(XLA, xla, 9)                \
  X(XPU, xpu, 12)               \
  X(MPS, mps, 13)               \
  X(Meta, meta, 14)             \
  X(HPU, hpu, 15)               \
  X(MTIA, mtia, 19)             \
  X(PrivateUse1, privateuseone, 20)

// X(C++ name, Python name), in the order of their numbers.
#define INTEROP_LAYOUTS(X) \
  X(Strided, strided)      \
  X(Sparse, sparse_coo)    \
  X(SparseCsr, sparse_csr) \
  X(Mkldnn, _mkldnn)       \
  X(SparseCsc, sparse_csc) \
  X(SparseBsr, sparse_bsr) \
  X(SparseBsc, sparse_bsc) \
  X(Jagged, jagged)
#define INTEROP_MEMORY_FORMATS(X)  \
  X(Contiguous, contiguous_format) \
  X(Preserve, preserve_format)     \
  X(ChannelsLast, channels_last)   \
  X(ChannelsLast3d, channels_last_3d)

namespace interop::stable {

namespace numbers {
#define INTEROP_NUMBER(name, ...) name,
enum ElementType { INTEROP_ELEMENT_TYPES(INTEROP_NUMBER) element_types };
enum Layout { INTEROP_LAYOUTS(INTEROP_NUMBER) layouts };
enum MemoryFormat { INTEROP_MEMORY_FORMATS(INTEROP_NUMBER) memory_formats };
#undef INTEROP_NUMBER
}  // namespace numbers

// The constants of torch's headers, kFloat, kCPU and kStrided, and similar ones for memory formats.
namespace names {
#define INTEROP_CONSTANT(name, ...) \
  inline constexpr auto k##name = static_cast<c10::ScalarType>(numbers::ElementType::name);
INTEROP_ELEMENT_TYPES(INTEROP_CONSTANT)
#undef INTEROP_CONSTANT
#define INTEROP_CONSTANT(name, ...) inline constexpr auto k##name = static_cast<c10::Layout>(numbers::Layout::name);
INTEROP_LAYOUTS(INTEROP_CONSTANT)
#undef INTEROP_CONSTANT
#define INTEROP_CONSTANT(name, ...) \
  inline constexpr auto k##name = static_cast<c10::MemoryFormat>(numbers::MemoryFormat::name);
INTEROP_MEMORY_FORMATS(INTEROP_CONSTANT)
#undef INTEROP_CONSTANT
#define INTEROP_CONSTANT(name, python, number) inline constexpr auto k##name = static_cast<c10::DeviceType>(number);
INTEROP_DEVICE_TYPES(INTEROP_CONSTANT)
#undef INTEROP_CONSTANT
}  // namespace names

}  // namespace interop::stable

// A name that torch's headers declare in the namespace itself hides one that a using directive brings in.
namespace c10 {
using namespace interop::stable::names;
}
namespace at {
using namespace c10;
}
