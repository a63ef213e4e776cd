# Sizes that may be symbolic: what x.sym_sizes() borrows from the tensor. Its vec() is a copy, to be kept.
from c10.core.SymInt cimport SymInt
from c10.util.ArrayRef cimport ArrayRef

cdef extern from "c10/core/SymIntArrayRef.h" namespace "c10" nogil:
    ctypedef ArrayRef[SymInt] SymIntArrayRef
