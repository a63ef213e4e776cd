# Compiled with INTEROP_BOUNDSCHECK.
"""Accessors that check their indices."""

cimport torch
from interop cimport accessor1, accessor2, const_accessor3, row1


def read(torch.Tensor x not None, long i, long j, long k):
    cdef const_accessor3[double] a = const_accessor3[double](x.cdata, b"x")
    cdef double value
    with nogil:
        value = a[i][j][k]
    return value


def write(torch.Tensor x not None, long i, long j, double value):
    cdef accessor2[double] a = accessor2[double](x.cdata, b"x")
    with nogil:
        a[i][j] = value


def unassigned(long i):
    cdef accessor1[float] a
    cdef row1[float] row
    if i < 0:
        return row[i]
    return a[i]
