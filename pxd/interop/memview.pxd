# The axes of a typed memoryview of any element type in another order, without a copy and without the GIL:
# `from interop.memview cimport permute`, then `turned = permute(view, 0, 3, 1, 2)`. Only for what `interop.build`
# translates: Cython itself has no memoryviews of a template's type.
#
# The result is a view of the same memory, which it owns together with `view`. It has strides, also of a view that is
# declared contiguous: assign it to a `float[:, :]`. Axes may be negative, counted from the last; a wrong one is a
# ValueError. Cython's memoryviews have at most 7 dimensions.
from interop.exceptions cimport translate_exception

cdef extern from "interop/memview.h" nogil:
    # Axis d of the result is axis `axis_d` of the view, as in torch.permute: one axis for each dimension.
    T[:] permute "interop::memview::permute"[T](T[:] view, Py_ssize_t axis0) except +translate_exception
    T[:, :] permute "interop::memview::permute"[T](
        T[:, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :] permute "interop::memview::permute"[T](
        T[:, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2) except +translate_exception
    T[:, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2, Py_ssize_t axis3,
    ) except +translate_exception
    T[:, :, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2, Py_ssize_t axis3, Py_ssize_t axis4,
    ) except +translate_exception
    T[:, :, :, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2,
        Py_ssize_t axis3, Py_ssize_t axis4, Py_ssize_t axis5) except +translate_exception
    T[:, :, :, :, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2,
        Py_ssize_t axis3, Py_ssize_t axis4, Py_ssize_t axis5, Py_ssize_t axis6) except +translate_exception
    # Two axes exchanged, as in torch.transpose.
    T[:] transpose "interop::memview::Rank<1>::transpose"[T](
        T[:] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :] transpose "interop::memview::Rank<2>::transpose"[T](
        T[:, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :] transpose "interop::memview::Rank<3>::transpose"[T](
        T[:, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :] transpose "interop::memview::Rank<4>::transpose"[T](
        T[:, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :, :] transpose "interop::memview::Rank<5>::transpose"[T](
        T[:, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :, :, :] transpose "interop::memview::Rank<6>::transpose"[T](
        T[:, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :, :, :, :] transpose "interop::memview::Rank<7>::transpose"[T](
        T[:, :, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    # One axis moved to where `destination` is, the others in their order, as in torch.movedim.
    T[:] movedim "interop::memview::Rank<1>::movedim"[T](
        T[:] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :] movedim "interop::memview::Rank<2>::movedim"[T](
        T[:, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :] movedim "interop::memview::Rank<3>::movedim"[T](
        T[:, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :] movedim "interop::memview::Rank<4>::movedim"[T](
        T[:, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :, :] movedim "interop::memview::Rank<5>::movedim"[T](
        T[:, :, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :, :, :] movedim "interop::memview::Rank<6>::movedim"[T](
        T[:, :, :, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :, :, :, :] movedim "interop::memview::Rank<7>::movedim"[T](
        T[:, :, :, :, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
