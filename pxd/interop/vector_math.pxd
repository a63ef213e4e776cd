# Functions of one float or double, for loops to be vectorised. They have no branches and no calls, and are within 3
# ulp.
from c10.util.BFloat16 cimport BFloat16

cdef extern from "interop/vector_math.h" namespace "interop" nogil:
    # An element in the type for computation.
    float widen(float x) noexcept
    double widen(double x) noexcept
    float widen(BFloat16 x) noexcept

    float exp(float x) noexcept
    double exp(double x) noexcept
    float expm1(float x) noexcept
    double expm1(double x) noexcept
    float sigmoid(float x) noexcept
    double sigmoid(double x) noexcept
    float tanh(float x) noexcept
    double tanh(double x) noexcept
    float elu(float x) noexcept
    double elu(double x) noexcept
