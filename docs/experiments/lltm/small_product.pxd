# Matrix products in which one side is as short as a batch.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

cdef extern from "small_product.h" namespace "lltm" nogil:
    # Whether `product` is faster than ATen for such a batch, on this CPU.
    cbool product_pays(int64_t batch) noexcept

    # C = A B, plus start[i] in row i unless it is NULL. Elements of a row of B and of C lie next to one another.
    void product(
        int64_t rows, int64_t columns, int64_t inner,
        const float* a, int64_t a_row, int64_t a_inner,
        const float* b, int64_t b_inner,
        const float* start,
        float* c, int64_t c_row,
    ) except +
    void product(
        int64_t rows, int64_t columns, int64_t inner,
        const double* a, int64_t a_row, int64_t a_inner,
        const double* b, int64_t b_inner,
        const double* start,
        double* c, int64_t c_row,
    ) except +

    # Each row of the source becomes a column of the target, whose rows have their elements next to one another.
    void transpose[T](
        int64_t rows, int64_t columns,
        const T* source, int64_t source_row, int64_t source_column,
        T* target, int64_t target_row,
    ) noexcept
