# std::array of bool, ATen's mask of the results to compute.
from libcpp cimport bool as cbool

cdef extern from "<array>" nogil:
    cppclass BoolArray2 "std::array<bool, 2>":
        cbool& operator[](size_t index) noexcept

    cppclass BoolArray3 "std::array<bool, 3>":
        cbool& operator[](size_t index) noexcept

    cppclass BoolArray4 "std::array<bool, 4>":
        cbool& operator[](size_t index) noexcept
