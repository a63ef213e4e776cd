# Fused types of tensor elements: `cdef void loop(floating* x, int64_t n) noexcept nogil: ...`. interop/dispatch.pxd
# chooses among the specialisations.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from c10.util.BFloat16 cimport BFloat16
from c10.util.Half cimport Half

ctypedef fused floating:
    float
    double

# The last two are C++ classes: read one with `<float> x`, make one with `<floating_and_reduced> y`.
ctypedef fused floating_and_reduced:
    float
    double
    Half
    BFloat16

ctypedef fused integral:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t

ctypedef fused complex_:
    float complex
    double complex

ctypedef fused all_types:
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
