# distutils: language = c++
"""Launches kernels that were compiled at run time, as users of Kernel do."""

from libc.stdint cimport int8_t, int16_t, int64_t, uintptr_t
from libcpp cimport bool as cbool

cimport ATen as at
cimport torch
from interop.cuda cimport Dim3, Kernel, Launch

cdef struct Pair:
    float first
    int second

cdef enum Mode:
    SLOW
    FAST


cdef class Launcher:
    """Launches a kernel with arguments of one kind or another."""

    cdef Kernel kernel

    def __init__(self, handle=None):
        if handle is not None:
            self.kernel = Kernel(handle)

    def nothing(self):
        with nogil:
            self.kernel.launch(1, 1)()

    def sizes(self, int64_t x, int64_t y, int64_t z, int threads, size_t shared_bytes):
        with nogil:
            self.kernel.launch(Dim3(x, y, z), threads, shared_bytes)()

    def pairs(self, int x, int y, int threads_x, short threads_y):
        with nogil:
            self.kernel.launch((x, y), (threads_x, threads_y, 3))()

    def numbers(self, int8_t a, int16_t b, int c, int64_t d, float e, double f, cbool g, Mode h):
        with nogil:
            self.kernel.launch(1, 1)(a, b, c, d, e, f, g, h)

    def struct(self, float first, int second):
        cdef Pair pair = Pair(first, second)
        with nogil:
            self.kernel.launch(1, 1)(pair)

    def pointer(self, uintptr_t address):
        with nogil:
            self.kernel.launch(1, 1)(<float*>address)

    def of_tensor(self, torch.Tensor x):
        cdef at.Tensor taken
        if x is not None:
            taken = x.cdata
        with nogil:
            self.kernel.launch(1, 1)(taken)

    def of_tensors(self, torch.Tensor x not None, torch.Tensor y not None):
        with nogil:
            self.kernel.launch(1, 1)(x.cdata, y.cdata)

    def of_int(self, int x):
        with nogil:
            self.kernel.launch(1, 1)(x)

    def of_int64(self, int64_t x):
        with nogil:
            self.kernel.launch(1, 1)(x)

    def of_double(self, double x):
        with nogil:
            self.kernel.launch(1, 1)(x)

    def many(self, torch.Tensor x not None):
        with nogil:
            self.kernel.launch(1, 1)(x.cdata, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15.0)

    def on_device(self, torch.Tensor x not None):
        """A kernel without tensors runs on the device that is current, here that of a tensor."""
        with nogil:
            _launch = Launch(x.cdata)
            self.kernel.launch(1, 1)()

    def copy(self):
        """Another one with a copy of the kernel."""
        made = Launcher()
        made.kernel = self.kernel
        return made

    def drop(self):
        """Lets go of the kernel, without the GIL."""
        with nogil:
            self.kernel = Kernel()
