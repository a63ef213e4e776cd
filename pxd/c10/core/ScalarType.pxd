# Element types. at.kFloat is the name that C++ users know; ScalarType.Float is the same value.
from libcpp cimport bool as cbool

from interop.exceptions cimport translate_exception

cdef extern from "c10/core/ScalarType.h" namespace "c10" nogil:
    enum class ScalarType "c10::ScalarType":
        Byte
        Char
        Short
        Int
        Long
        Half
        Float
        Double
        ComplexHalf
        ComplexFloat
        ComplexDouble
        Bool
        QInt8
        QUInt8
        QInt32
        BFloat16
        Float8_e5m2
        Float8_e4m3fn
        Float8_e5m2fnuz
        Float8_e4m3fnuz
        UInt16
        UInt32
        UInt64
        Float8_e8m0fnu
        Undefined

    const ScalarType kByte
    const ScalarType kChar
    const ScalarType kShort
    const ScalarType kInt
    const ScalarType kLong
    const ScalarType kHalf
    const ScalarType kFloat
    const ScalarType kDouble
    const ScalarType kComplexHalf
    const ScalarType kComplexFloat
    const ScalarType kComplexDouble
    const ScalarType kBool
    const ScalarType kQInt8
    const ScalarType kQUInt8
    const ScalarType kQInt32
    const ScalarType kBFloat16
    const ScalarType kFloat8_e5m2
    const ScalarType kFloat8_e4m3fn
    const ScalarType kFloat8_e5m2fnuz
    const ScalarType kFloat8_e4m3fnuz
    const ScalarType kUInt16
    const ScalarType kUInt32
    const ScalarType kUInt64
    const ScalarType kFloat8_e8m0fnu

    const char* toString(ScalarType t) noexcept
    size_t elementSize(ScalarType t) except +translate_exception
    cbool isIntegralType(ScalarType t, cbool include_bool) noexcept
    cbool isFloatingType(ScalarType t) noexcept
    cbool isComplexType(ScalarType t) noexcept
    cbool isQIntType(ScalarType t) noexcept
    cbool isSignedType(ScalarType t) except +translate_exception
    ScalarType promoteTypes(ScalarType a, ScalarType b) except +translate_exception
