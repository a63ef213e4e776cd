# The specialisation of a fused function for a dtype that is known at run time, and the fused types of tensor elements.
#
#     cdef void loop(char** data, const int64_t* strides, int64_t n, floating* _) noexcept nogil: ...
#
#     it.for_each(dispatch(it.dtype(0), b"twice", loop[float], loop[double]), NULL)
#
# For at.parallel_for it is dispatch_part(dtype, name, part[float], ...), of `cdef void part(int64_t begin, int64_t
# end, floating* data)`.
#
# The last parameter says which dtype a specialisation is for; it is the context that for_each() was given, or the data
# of parallel_for(). (Cython wants a fused type among the parameters.) Where there is none for the dtype:
# NotImplementedError, as torch words it.
from c10.core.ScalarType cimport ScalarType
from interop.element_types cimport all_types, complex_, floating, floating_and_reduced, integral
from interop.exceptions cimport translate_exception
from interop.iterator cimport Loop, Loop2d
from interop.parallel cimport Part

cdef extern from "interop/dispatch.h" nogil:
    Loop dispatch "INTEROP_DISPATCH"(ScalarType dtype, const char* name, ...) except +translate_exception
    Part dispatch_part "INTEROP_DISPATCH"(ScalarType dtype, const char* name, ...) except +translate_exception
    Loop2d dispatch2d "INTEROP_DISPATCH"(ScalarType dtype, const char* name, ...) except +translate_exception
