# Sizes that may be symbolic. x.sym_sizes() borrows them from the tensor; vec() makes a copy to keep.
from c10.core.SymInt cimport SymInt
from c10.util.ArrayRef cimport ArrayRef

cdef extern from "c10/core/SymIntArrayRef.h" namespace "c10" nogil:
    ctypedef ArrayRef[SymInt] SymIntArrayRef
