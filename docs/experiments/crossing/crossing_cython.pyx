# A call into compiled code: with nothing in it, and with tensors that are read.
from libc.stdint cimport int64_t

cimport torch


def empty(x):
    pass


def numel(torch.Tensor x not None):
    return x.cdata.numel()


def one(torch.Tensor a not None):
    return a.cdata.numel()


def three(torch.Tensor a not None, torch.Tensor b not None, torch.Tensor c not None):
    cdef int64_t total = a.cdata.numel() + b.cdata.numel() + c.cdata.numel()
    return total


def eight(
    torch.Tensor a not None, torch.Tensor b not None, torch.Tensor c not None, torch.Tensor d not None,
    torch.Tensor e not None, torch.Tensor f not None, torch.Tensor g not None, torch.Tensor h not None,
):
    cdef int64_t total = a.cdata.numel() + b.cdata.numel() + c.cdata.numel() + d.cdata.numel()
    return total + e.cdata.numel() + f.cdata.numel() + g.cdata.numel() + h.cdata.numel()
