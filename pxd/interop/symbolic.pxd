# What Cython must know of numbers that may be symbolic.
cdef extern from "interop/symbolic.h" nogil:
    # The base of SymInt and SymFloat. C++ converts them to a Scalar, which keeps the symbol.
    cppclass Symbolic "c10::Scalar":
        pass

    # The type of `n / 2` and `2 / n` for a SymInt `n`, so that they do not compile.
    cppclass use_floordiv_or_a_float "interop::use_floordiv_or_a_float":
        pass
