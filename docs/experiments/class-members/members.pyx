# distutils: language = c++
"""One class four times: its tensor is kept in a typed attribute, an at.Tensor, a typed memoryview, a plain object."""
cimport ATen as at
cimport torch

from interop cimport const_accessor1
from interop.bridges cimport as_memoryview, from_buffer


cdef class TypedMember:
    """A Python object that is known to be a tensor. Assigning another object raises TypeError."""
    cdef torch.Tensor t

    def __init__(self, torch.Tensor t not None):
        self.t = t

    def numel(self):
        return self.t.cdata.numel()

    def first(self):
        return const_accessor1[float](self.t.cdata, b"t")[0]

    def neg(self):
        cdef at.Tensor t = self.t.cdata, result
        with nogil:
            result = at.neg(t)
        return torch.wrap(result)

    def get(self):
        return self.t

    def set(self, torch.Tensor t not None):
        self.t = t


cdef class CppMember:
    """A C++ tensor, which can be used without the GIL as it is."""
    cdef at.Tensor t

    def __init__(self, torch.Tensor t not None):
        self.t = t.cdata

    def numel(self):
        return self.t.numel()

    def first(self):
        return const_accessor1[float](self.t, b"t")[0]

    def neg(self):
        cdef at.Tensor result
        with nogil:
            result = at.neg(self.t)
        return torch.wrap(result)

    def get(self):
        return torch.wrap(self.t)

    def set(self, torch.Tensor t not None):
        self.t = t.cdata

    def close(self):
        """Lets the tensor go, which breaks a cycle that garbage collection cannot see."""
        self.t = at.Tensor()


cdef class ViewMember:
    """The memory of a tensor, and neither its Python object nor its history."""
    cdef float[:] t

    def __init__(self, torch.Tensor t not None):
        self.t = as_memoryview(t.cdata)

    def numel(self):
        return self.t.shape[0]

    def first(self):
        cdef float[:] t = self.t  # an attribute that was never assigned is found here, and not without the GIL
        return t[0]

    def neg(self):
        cdef at.Tensor t = from_buffer(self.t), result
        with nogil:
            result = at.neg(t)
        return torch.wrap(result)

    def get(self):
        return torch.wrap(from_buffer(self.t))

    def set(self, torch.Tensor t not None):
        self.t = as_memoryview(t.cdata)


cdef class ObjectMember:
    """Any object; its type is checked when it is used."""
    cdef object t

    def __init__(self, t):
        self.t = t

    def numel(self):
        return torch.unpack(self.t).numel()

    def first(self):
        return const_accessor1[float](torch.unpack(self.t), b"t")[0]

    def neg(self):
        cdef at.Tensor t = torch.unpack(self.t), result
        with nogil:
            result = at.neg(t)
        return torch.wrap(result)

    def get(self):
        return self.t

    def set(self, t):
        self.t = t


cdef class PickledTyped(TypedMember):
    def __reduce__(self):
        return type(self), (self.get(),)


cdef class PickledCpp(CppMember):
    def __reduce__(self):
        return type(self), (self.get(),)


cdef class PickledView(ViewMember):
    def __reduce__(self):
        return type(self), (self.get(),)


cdef class PickledObject(ObjectMember):
    def __reduce__(self):
        return type(self), (self.get(),)
