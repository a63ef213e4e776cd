# cython: freethreading_compatible=True
# Work with the GIL held and released, a call for a loop in Python, and copies of tensors made without the GIL.
cimport ATen as at
cimport torch

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned microseconds)


def empty(x):
    pass


def empty_released(x):
    with nogil:
        pass


def plus(torch.Tensor a not None, torch.Tensor b not None):
    return torch.wrap(at.add(a.cdata, b.cdata))


def products(torch.Tensor out not None, torch.Tensor a not None, int count):
    cdef at.Tensor x = a.cdata, y = out.cdata
    for _ in range(count):
        at.mm_out(y, x, x)


def products_of_members(torch.Tensor out not None, torch.Tensor a not None, int count):
    """With the GIL held and no copies kept: those that ATen makes on the way are the first ones, use count 1 to 2."""
    for _ in range(count):
        at.mm_out(out.cdata, a.cdata, a.cdata)


def products_released(torch.Tensor out not None, torch.Tensor a not None, int count):
    cdef at.Tensor x = a.cdata, y = out.cdata
    for _ in range(count):
        with nogil:
            at.mm_out(y, x, x)


def first_copies(torch.Tensor x not None, int count, unsigned between=0):
    """Copies of an at::Tensor that only its Python object holds, a millisecond apart: use count 1 to 2, and back.

    Each is dropped after `between` microseconds.
    """
    with nogil:
        copies(x.cdata, count, between)


def further_copies(torch.Tensor x not None, int count, unsigned between=0):
    """The same, with a copy made before the GIL was released: use count 2 to 3, and back."""
    cdef at.Tensor kept = x.cdata
    with nogil:
        copies(kept, count, between)


cdef void copies(const at.Tensor& x, int count, unsigned between) noexcept nogil:
    cdef at.Tensor copy
    for _ in range(count):
        usleep(1000)  # stands for work, and gives another thread the time to take the GIL
        copy = x
        if between:
            usleep(between)
        copy.reset()
