# Selects the specialisation of a fused function for a dtype at run time. Also the fused types of tensor elements.
#
#     cdef void loop(char** data, const int64_t* strides, int64_t n, floating* _) noexcept nogil: ...
#
#     it.for_each(dispatch(it.dtype(0), b"twice", loop[float], loop[double]), NULL)
#
# For at.parallel_for, use dispatch_part(dtype, name, part[float], ...) with
# `cdef void part(int64_t begin, int64_t end, floating* data)`.
#
# The type of the last parameter identifies the dtype of a specialisation. Its value is the context passed to
# for_each(), or the data passed to parallel_for(). (Cython requires a fused type among the parameters.) If no
# specialisation matches, the call raises NotImplementedError with torch's wording.
from c10.core.ScalarType cimport ScalarType
from interop.element_types cimport all_types, complex_, floating, floating_and_reduced, integral
from interop.exceptions cimport translate_exception
from interop.parallel cimport Part
from interop.tensor_iterator cimport Loop, Loop2d

cdef extern from "interop/dispatch.h" nogil:
    Loop dispatch "INTEROP_DISPATCH"(ScalarType dtype, const char* name, ...) except +translate_exception
    Part dispatch_part "INTEROP_DISPATCH"(ScalarType dtype, const char* name, ...) except +translate_exception
    Loop2d dispatch2d "INTEROP_DISPATCH"(ScalarType dtype, const char* name, ...) except +translate_exception
