cdef extern from "c10/core/Layout.h" namespace "c10" nogil:
    enum class Layout "c10::Layout":
        Strided
        Sparse
        SparseCsr
        Mkldnn
        SparseCsc
        SparseBsr
        SparseBsc
        Jagged

    const Layout kStrided
    const Layout kSparse
    const Layout kSparseCsr
    const Layout kMkldnn
    const Layout kSparseCsc
    const Layout kSparseBsr
    const Layout kSparseBsc
    const Layout kJagged
