# Facade over interop/iterator.h: at::TensorIterator cannot be copied or default-constructed, and takes lambdas of C++.
#
# at::TensorIterator: an elementwise operation or a reduction, with the loop over elements written in Cython.
#
#     cdef void twice(char** data, const int64_t* strides, int64_t n, void* context) noexcept nogil:
#         cdef int64_t i
#         for i in range(n):
#             (<float*> (data[0] + i * strides[0]))[0] = 2 * (<float*> (data[1] + i * strides[1]))[0]
#
#     cdef at.Tensor result                                   # undefined: the iterator makes it
#     cdef at.TensorIterator it = at.TensorIterator.unary_op(result, x.cdata)
#     it.for_each(twice, NULL)
#     result = it.output(0)
#
# Loops get a pointer to the first element of each tensor, outputs first, and the bytes to the next one. They are called
# for parts of the tensors, without the GIL, on several threads; what they raise reaches the caller (ATen/Parallel.pxd).
#
# An iterator owns its tensors. Making one refuses tensors that are not on the CPU or whose memory does not hold their
# values, and tensors that autograd would have to know of; it counts as an in-place operation on outputs that exist.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from ATen.core.TensorBody cimport CTensor, Tensor
from c10.core.ScalarType cimport ScalarType
from c10.util.ArrayRef cimport IntArrayRef
from interop.exceptions cimport translate_exception
from interop.iterator cimport Loop, Loop2d

cdef extern from "interop/iterator.h" namespace "interop" nogil:
    cppclass TensorIterator:
        TensorIterator() noexcept  # must be assigned to before it is used: ValueError

        int ndim() except +translate_exception
        int ntensors() except +translate_exception
        int noutputs() except +translate_exception
        int ninputs() except +translate_exception
        int64_t numel() except +translate_exception
        int64_t num_output_elements() except +translate_exception
        int num_reduce_dims() except +translate_exception
        cbool is_contiguous() except +translate_exception
        IntArrayRef shape() except +translate_exception  # of the loops: dimensions are reordered and merged
        IntArrayRef strides(int64_t tensor) except +translate_exception  # in bytes
        ScalarType common_dtype() except +translate_exception
        ScalarType dtype(int64_t tensor) except +translate_exception  # of the elements that the loop sees
        Tensor output(int64_t output) except +translate_exception  # the result, once the loop has run
        Tensor input(int64_t input) except +translate_exception  # a converted copy, where dtypes are promoted

        # Calls the loop for all elements, then casts what it wrote to the dtypes of the outputs. Parts have at least
        # `grain` elements. Reductions run on one thread.
        void for_each(Loop loop, void* context) except +translate_exception
        void for_each(Loop loop, void* context, int64_t grain) except +translate_exception
        void for_each(Loop2d loop, void* context) except +translate_exception
        void for_each(Loop2d loop, void* context, int64_t grain) except +translate_exception

        # For loops that fold the input into the output, in any order: the output holds the neutral element before. Of
        # one dtype. On several threads, each with an output of its own, which the loop folds at last.
        void parallel_reduce(Loop loop, void* context) except +translate_exception
        void parallel_reduce(Loop2d loop, void* context) except +translate_exception

        # Calls the function, on several threads, with an iterator over what is reduced to one element of the output.
        void foreach_reduced_elt(
            void (*function)(TensorIterator& part, void* context) except * nogil,
            void* context) except +translate_exception

        # What torch's operations of these kinds do about dtypes. `out` may be undefined, but for the first and last.
        @staticmethod
        TensorIterator nullary_op(CTensor& out) except +translate_exception

        @staticmethod
        TensorIterator unary_op(CTensor& out, CTensor& a) except +translate_exception  # of one dtype

        @staticmethod
        TensorIterator unary_float_op(CTensor& out, CTensor& a) except +translate_exception

        @staticmethod
        TensorIterator binary_op(CTensor& out, CTensor& a, CTensor& b) except +translate_exception

        @staticmethod
        TensorIterator binary_float_op(CTensor& out, CTensor& a, CTensor& b) except +translate_exception

        # The loop writes truth values.
        @staticmethod
        TensorIterator comparison_op(CTensor& out, CTensor& a, CTensor& b) except +translate_exception

        # `out` has size 1 in each dimension that is reduced, and holds what the reduction begins with.
        @staticmethod
        TensorIterator reduce_op(CTensor& out, CTensor& a) except +translate_exception

    # What to iterate over, and how. The defaults are those of C++: tensors of one dtype, outputs are resized. Tensors
    # are always checked for memory that they share.
    cppclass TensorIteratorConfig:
        TensorIteratorConfig() noexcept
        TensorIteratorConfig& add_output(CTensor& tensor) except +translate_exception  # undefined: build() makes it
        TensorIteratorConfig& add_input(CTensor& tensor) except +translate_exception
        TensorIteratorConfig& check_all_same_dtype(cbool value) noexcept
        TensorIteratorConfig& promote_inputs_to_common_dtype(cbool value) noexcept
        TensorIteratorConfig& promote_integer_inputs_to_float(cbool value) noexcept
        TensorIteratorConfig& cast_common_dtype_to_outputs(cbool value) noexcept
        TensorIteratorConfig& enforce_safe_casting_to_output(cbool value) noexcept
        TensorIteratorConfig& enforce_linear_iteration(cbool value) noexcept
        TensorIteratorConfig& resize_outputs(cbool value) noexcept
        TensorIteratorConfig& is_reduction(cbool value) noexcept
        TensorIteratorConfig& declare_static_dtype(ScalarType dtype) noexcept  # of outputs that build() makes
        TensorIteratorConfig& declare_static_shape(const vector[int64_t]& shape) except +translate_exception
        TensorIterator build() except +translate_exception
