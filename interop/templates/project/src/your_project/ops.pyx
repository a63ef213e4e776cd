"""The compiled functions. ops.pxd says which of them other Cython modules can cimport."""

cimport ATen as at
cimport torch


cdef at.Tensor softclip_tensor(const at.Tensor& x, double limit) except * nogil:
    return at.mul(at.tanh(at.div(x, limit)), limit)


def softclip(torch.Tensor x not None, double limit):
    """Bring the elements of a tensor smoothly into an interval: ``limit * tanh(x / limit)``.

    Parameters
    ----------
    x : torch.Tensor
        Of any shape, dtype and device; gradients flow through it.
    limit : float
        The bound, above 0.

    Returns
    -------
    torch.Tensor
        Like `x`.
    """
    if not limit > 0:
        raise ValueError(f"limit must be above 0, got {limit}")
    cdef at.Tensor y, a = x.cdata  # taken while the GIL is held
    with nogil:
        y = softclip_tensor(a, limit)
    return torch.wrap(y)
