# Facade over interop/tensor_iterator.h: at::TensorIterator has neither copy nor default constructor, and takes lambdas.
#
# at::TensorIterator: an elementwise operation or a reduction, with the loop over elements written in Cython.
#
#     cdef void twice(char** data, const int64_t* strides, int64_t n, void* context) noexcept nogil:
#         cdef int64_t i
#         for i in range(n):
#             (<float*> (data[0] + i * strides[0]))[0] = 2 * (<float*> (data[1] + i * strides[1]))[0]
#
#     cdef at.Tensor result                                   # undefined: the iterator allocates it
#     cdef at.TensorIterator it = at.TensorIterator.unary_op(result, x.cdata)
#     it.for_each(twice, NULL)
#     result = it.output(0)
#
# A loop gets a pointer to the first element of each tensor, outputs first, and the strides in bytes. The iterator
# calls it for parts of the tensors, without the GIL, on several threads. Exceptions reach the caller (see
# ATen/Parallel.pxd).
#
# An iterator owns its tensors. The constructor functions reject tensors that are not on the CPU, tensors whose memory
# does not hold their values, and tensors that autograd would have to track. They count as an in-place operation on
# outputs that exist.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from ATen.core.TensorBody cimport CTensor, Tensor
from c10.core.ScalarType cimport ScalarType
from c10.util.ArrayRef cimport IntArrayRef
from interop.exceptions cimport translate_exception
from interop.tensor_iterator cimport Loop, Loop2d

cdef extern from "interop/tensor_iterator.h" namespace "interop" nogil:
    cppclass TensorIterator:
        TensorIterator() noexcept  # using it before assignment raises ValueError

        int ndim() except +translate_exception
        int ntensors() except +translate_exception
        int noutputs() except +translate_exception
        int ninputs() except +translate_exception
        int64_t numel() except +translate_exception
        int64_t num_output_elements() except +translate_exception
        int num_reduce_dims() except +translate_exception
        cbool is_contiguous() except +translate_exception
        IntArrayRef shape() except +translate_exception  # as the loops see it: dimensions are reordered and merged
        IntArrayRef strides(int64_t tensor) except +translate_exception  # in bytes
        ScalarType common_dtype() except +translate_exception
        ScalarType dtype(int64_t tensor) except +translate_exception  # of the elements as the loop sees them
        Tensor output(int64_t output) except +translate_exception  # the result, after the loop has run
        Tensor input(int64_t input) except +translate_exception  # a converted copy if dtypes are promoted

        # Calls the loop for all elements, then casts the values it wrote to the dtypes of the outputs. Parts have at
        # least `grain` elements. Reductions run on one thread.
        void for_each(Loop loop, void* context) except +translate_exception
        void for_each(Loop loop, void* context, int64_t grain) except +translate_exception
        void for_each(Loop2d loop, void* context) except +translate_exception
        void for_each(Loop2d loop, void* context, int64_t grain) except +translate_exception

        # For loops that fold the input into the output, in any order. Both have the same dtype, and the output starts
        # with the neutral element. Each thread has its own output; at the end the loop folds those together.
        void parallel_reduce(Loop loop, void* context) except +translate_exception
        void parallel_reduce(Loop2d loop, void* context) except +translate_exception

        # Calls the function for each element of the output, on several threads. `part` iterates over the inputs of
        # that element.
        void foreach_reduced_elt(
            void (*function)(TensorIterator& part, void* context) except * nogil,
            void* context) except +translate_exception

        # Treat dtypes as torch's operations of these kinds do. `out` may be undefined, except in the first and the
        # last.
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

        # The loop writes booleans.
        @staticmethod
        TensorIterator comparison_op(CTensor& out, CTensor& a, CTensor& b) except +translate_exception

        # `out` has size 1 in each reduced dimension, and holds the initial values of the reduction.
        @staticmethod
        TensorIterator reduce_op(CTensor& out, CTensor& a) except +translate_exception

    # Operands and options of an iterator. The defaults are those of C++: tensors of one dtype, outputs are resized.
    # Tensors are always checked for memory that they share.
    cppclass TensorIteratorConfig:
        TensorIteratorConfig() noexcept
        TensorIteratorConfig& add_output(CTensor& tensor) except +translate_exception  # undefined: build() allocates it
        TensorIteratorConfig& add_input(CTensor& tensor) except +translate_exception
        TensorIteratorConfig& check_all_same_dtype(cbool value) noexcept
        TensorIteratorConfig& promote_inputs_to_common_dtype(cbool value) noexcept
        TensorIteratorConfig& promote_integer_inputs_to_float(cbool value) noexcept
        TensorIteratorConfig& cast_common_dtype_to_outputs(cbool value) noexcept
        TensorIteratorConfig& enforce_safe_casting_to_output(cbool value) noexcept
        TensorIteratorConfig& enforce_linear_iteration(cbool value) noexcept
        TensorIteratorConfig& resize_outputs(cbool value) noexcept
        TensorIteratorConfig& is_reduction(cbool value) noexcept
        TensorIteratorConfig& declare_static_dtype(ScalarType dtype) noexcept  # of outputs that build() allocates
        TensorIteratorConfig& declare_static_shape(const vector[int64_t]& shape) except +translate_exception
        TensorIterator build() except +translate_exception
