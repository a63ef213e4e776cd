# cython: binding=False, always_allow_keywords=False
# distutils: language = c++
"""The functions of cheapest.h, called in the cheapest way (METH_O), and `from_numpy`, which has a wrapper there."""
cimport numpy
cimport torch

cdef extern from "cheapest.h" namespace "cheapest":
    object _unowned "cheapest::unowned"(object) except +
    object _owned "cheapest::owned"(object) except +
    object _alias "cheapest::alias"(object) except +
    object _capsule "cheapest::capsule"(object) except +
    object made_from_numpy "cheapest::made_from_numpy"()
    void _counted "cheapest::counted"() nogil
    void _uncounted "cheapest::uncounted"() nogil

numpy.import_array()

from_numpy = made_from_numpy()


def unowned(x):
    return _unowned(x)


def owned(x):
    return _owned(x)


def alias(x):
    return _alias(x)


def capsule(x):
    return _capsule(x)


def counted(_):
    _counted()


def uncounted(_):
    _uncounted()


def array(torch.Tensor x):
    """An array over the memory of `x`, which it owns."""
    cdef numpy.npy_intp size = x.cdata.numel()
    made = numpy.PyArray_SimpleNewFromData(1, &size, numpy.NPY_FLOAT32, x.cdata.data_ptr())
    numpy.set_array_base(made, x)
    return made
