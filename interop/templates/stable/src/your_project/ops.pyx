"""The compiled functions. ops.pxd says which of them other Cython modules can cimport."""

cimport torch.stable as st


cdef st.Handle swish_(const st.Handle& x) except * nogil:
    return st.mul(x, st.sigmoid(x))


def swish(st.Tensor x not None):
    """Let the elements of a tensor pass as far as they are above zero: ``x * sigmoid(x)``.

    Parameters
    ----------
    x : torch.Tensor
        Of any shape, floating-point dtype and device; gradients flow through it.

    Returns
    -------
    torch.Tensor
        Like `x`.
    """
    cdef st.Handle y, a = x.cdata  # taken while the GIL is held
    with nogil:
        y = swish_(a)
    return st.wrap(y)
