cimport ATen as at
cimport torch
from shape cimport rows

cdef extern from "scale.h":
    at.Tensor scale(const at.Tensor& x, double factor) except +


def scaled(torch.Tensor x not None, double factor):
    cdef at.Tensor y = scale(at.tanh(x.cdata), factor)
    return torch.wrap(y)


def row_count(torch.Tensor x not None):
    return rows(x.cdata)
