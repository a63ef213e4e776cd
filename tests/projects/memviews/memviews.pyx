# distutils: language = c++
"""Typed memoryviews with their axes in another order: of every rank, of each kind of element, in members and loops."""

import interop
import numpy as np

from interop.memview cimport movedim, permute, transpose

ctypedef fused Element:
    unsigned char
    short
    double
    float complex

ctypedef packed struct Pixel:
    unsigned char red
    float depth


def permute1(const Element[:] v, Py_ssize_t a):
    return permute(v, a)


def permute2(const Element[:, :] v, Py_ssize_t a, Py_ssize_t b):
    return permute(v, a, b)


def permute3(const Element[:, :, :] v, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c):
    return permute(v, a, b, c)


def permute4(const Element[:, :, :, :] v, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c, Py_ssize_t d):
    return permute(v, a, b, c, d)


def permute5(const Element[:, :, :, :, :] v, int a, int b, int c, int d, int e):
    return permute(v, a, b, c, d, e)


def permute6(const Element[:, :, :, :, :, :] v, int a, int b, int c, int d, int e, int f):
    return permute(v, a, b, c, d, e, f)


def permute7(const Element[:, :, :, :, :, :, :] v, int a, int b, int c, int d, int e, int f, int g):
    return permute(v, a, b, c, d, e, f, g)


def other_elements(Pixel[:, ::1] pixels, object[:, :] objects, bint[:, :] truths):
    """A struct, Python objects, and what has another name than its type."""
    return transpose(pixels, 0, 1), permute(objects, 1, 0), transpose(truths, -1, -2)


def transposed(double[:, :, :, :] v, Py_ssize_t a, Py_ssize_t b):
    return transpose(v, a, b)


def moved(double[:, :, :, :] v, Py_ssize_t source, Py_ssize_t destination):
    return movedim(v, source, destination)


def of_contiguous(double[:, :, ::1] c, double[::1, :, :] fortran):
    """Reads and writes along the axes of the result, which is not contiguous though the arguments are."""
    cdef double[:, :, :] turned = permute(c, 2, 0, 1)
    found = [[[turned[i, j, k] for k in range(turned.shape[2])] for j in range(turned.shape[1])]
             for i in range(turned.shape[0])]
    turned[1, 0, 0] = -1
    inferred = transpose(fortran, 0, 2)
    inferred[0, 0, 1] = -2
    return found


def of_slices(double[:, :, :, :] v):
    """Of parts, and of what another call has made; each is a value that nobody keeps."""
    return permute(transpose(v[1:, 0, ::-1], 0, 1), 2, 0, 1), permute(v, 3, 2, 1, 0)[0], transpose(v, 0, 3).T


cdef double[:, :] upside_down(double[:, ::1] v) nogil:
    return permute(v, 1, 0)


def total(double[:, ::1] v, Py_ssize_t repeats):
    """Makes and drops views without the GIL."""
    cdef double[:, :] turned
    cdef double result = 0
    cdef Py_ssize_t n
    with nogil:
        for n in range(repeats):
            turned = upside_down(v)
            turned = permute(turned, 1, 0)
            result += turned[0, n % turned.shape[1]]
    return result


def refused_without_the_gil(double[:, :] v, Py_ssize_t axis):
    cdef double[:, :] turned = v
    with nogil:
        turned = permute(v, axis, 0)
    return turned


def nothing(double[:, :] v):
    return permute(v, 1, 0)


cdef class Images:
    """Keeps images, and the same memory with other axes."""
    cdef double[:, :, :, ::1] images
    cdef double[:, :, :, :] channels_first

    def __init__(self, images):
        self.images = images
        self.channels_first = permute(self.images, 0, 3, 1, 2)

    def turn(self):
        """A member that takes its own transposed view."""
        self.channels_first = permute(self.channels_first, 0, 1, 3, 2)

    def forget(self):
        self.images = None

    def turn_what_is_forgotten(self):
        return permute(self.images, 0, 3, 1, 2)

    def array(self):
        return np.asarray(self.channels_first)

    def tensor(self):
        return interop.from_buffer(self.channels_first)

    def fill(self, double value):
        with nogil:
            self.channels_first[:] = value
