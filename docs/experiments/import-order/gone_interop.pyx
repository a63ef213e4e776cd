"""A module that calls a function which the running torch does not have: the headers of the other one declare it."""
cimport torch


cdef extern from "torch/headeronly/version.h" namespace "c10" nogil:
    long gone_in_the_next_release() noexcept


def call():
    return gone_in_the_next_release()


def numel(torch.Tensor x not None):
    return x.cdata.numel()
