# Selects the specialisation of a fused function for a dtype at run time. Also the fused types of tensor elements.
#
#     at.parallel_for(0, n, 4096, dispatch_part(dtype, b"twice", part[float], part[double]), data)
#
# with `cdef void part(int64_t begin, int64_t end, floating* data)`. The type of the last parameter identifies the
# dtype. If no specialisation matches, the call raises NotImplementedError with torch's wording.
from c10.core.ScalarType cimport ScalarType
from interop.element_types cimport all_types, complex_, floating, floating_and_reduced, integral
from interop.exceptions cimport translate_exception
from interop.parallel cimport Part

cdef extern from "interop/dispatch.h" nogil:
    Part dispatch_part "INTEROP_DISPATCH"(ScalarType dtype, const char* name, ...) except +translate_exception
